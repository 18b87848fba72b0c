#!/usr/bin/env bash
# ranks.sh N COMMAND…: N ranks of one job on this machine's first GPU. NCCL refuses that to ranks of one host. So each
# rank says that it is on a host of its own, and they talk over the loopback interface. The port of the rendezvous is
# RANKS_PORT (29400). With NCCL_COMM_ID rank 0's NCCL listens there, for one communicator (others are made from it).
# Where RANKS_STORE is set, PyTorch's store listens instead, which hands out ids itself: both cannot. Ends with the code
# of the rank that failed first.
set -u
n=$1
shift
export WORLD_SIZE=$n LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=${RANKS_PORT:-29400}
export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES-0}"
unset NCCL_COMM_ID
[ -n "${RANKS_STORE-}" ] || export NCCL_COMM_ID=127.0.0.1:$MASTER_PORT
export NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_NET=Socket NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME=lo
# Sums in the switch or in another tree, and more blocks than several ranks have room for at once.
export NCCL_NVLS_ENABLE=0 NCCL_MNNVL_ENABLE=0 NCCL_PAT_ENABLE=0 NCCL_MAX_NCHANNELS=4

pids=()
for ((rank = 0; rank < n; ++rank)); do
  RANK=$rank NCCL_HOSTID=rank$rank "$@" &
  pids+=($!)
done
code=0
for ((left = n; left > 0; --left)); do
  wait -n
  ended=$?
  if ((ended != 0 && code == 0)); then
    code=$ended
    # The others may wait for it for ever.
    (sleep 5 && kill "${pids[@]}") &>/dev/null &
    disown
  fi
done
exit "$code"
