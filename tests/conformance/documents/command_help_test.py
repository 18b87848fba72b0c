#!/usr/bin/env python3
"""Help, manual pages and completions say the same: each command and option of `deja help --json` is in all of them.

Usage: command_help_test.py PATH_TO_DEJA. Completions are driven by the shells that are installed."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

DEJA = os.path.abspath(sys.argv.pop())
COLUMNS = 100
SHELLS = ("bash", "zsh", "fish")


def deja(*words, code=0):
    done = subprocess.run([DEJA, *words], capture_output=True, text=True)
    if done.returncode != code:
        raise AssertionError(f"deja {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout if code == 0 else done.stderr


ALL = json.loads(deja("help", "--json"))
COMMANDS = {command["name"]: command for command in ALL["commands"]}


def options(command):
    return [name for option in command["options"] if not option.get("positional") for name in option["names"]]


def wanted(test, program):
    if shutil.which(program) is None:
        test.skipTest(f"{program} is not installed: tools/setup.sh --tests installs it")


class Help(unittest.TestCase):
    def test_help_of_a_command_is_its_own_help(self):
        for name, command in COMMANDS.items():
            text = deja(name, "--help")
            self.assertEqual(deja("help", name), text)
            for option in options(command):
                self.assertRegex(text, rf"(?m)^  (.*, )?{re.escape(option)}\b", name)
            for example in command["examples"]:
                self.assertIn(example, text)

    def test_is_not_wider_than_a_terminal(self):
        texts = [deja("--help"), *(deja("help", name) for name in COMMANDS), *(t["text"] for t in ALL["topics"])]
        for line in "\n".join(texts).splitlines():
            self.assertLessEqual(len(line), COLUMNS, line)

    def test_lists_commands_and_topics(self):
        text = deja("help")
        self.assertEqual(text, deja("--help"))
        for name in [*COMMANDS, *(topic["name"] for topic in ALL["topics"])]:
            self.assertRegex(text, rf"(?m)^  {re.escape(name)}\s")

    def test_topics(self):
        names = [topic["name"] for topic in ALL["topics"]]
        for name in "levels", "threads", "inputs", "traces", "exit-codes", "environment":
            self.assertIn(name, names)
        for topic in ALL["topics"]:
            self.assertEqual(deja("help", topic["name"]), topic["text"])
            self.assertEqual(json.loads(deja("help", topic["name"], "--json")), topic)
            # What a topic quotes of the command line is there.
            for command, flag in re.findall(r"`deja ([a-z]+)(?: [A-Z]+)?(?: (--[a-z-]+))?", topic["text"].replace("\n", " ")):
                self.assertIn(command, COMMANDS, topic["name"])
                if flag:
                    self.assertIn(flag, options(COMMANDS[command]), topic["name"])

    def test_the_levels_are_those_of_the_option(self):
        level, = (o for o in COMMANDS["record"]["options"] if "--level" in o["names"])
        text = deja("help", "levels")
        for choice in level["choices"]:
            self.assertRegex(text, rf"(?m)^  {choice} ")

    def test_the_environment_has_every_variable(self):
        root = pathlib.Path(__file__).resolve().parents[3]
        text = deja("help", "environment")
        for name in re.findall(r"(?m)^DEJA_ENV\(\w+, (\w+),", (root / "common" / "env_vars.def").read_text()):
            self.assertRegex(text, rf"(?m)^  {name}\b")

    def test_long_lists_of_options_have_headings(self):
        for name in "record", "replay", "pack", "show":
            text = deja(name, "--help").split("\nOptions:\n")[1].split("\n\n")[0]
            self.assertEqual(re.findall(r"(?m)^  (?:-h, )?(--[a-z-]+)", text), ["--help", "--json"], name)


class Mistakes(unittest.TestCase):
    def test_the_nearest_name_is_suggested(self):
        for words, said in ((["repaly"], "there is no command 'repaly'; did you mean 'replay'?"),
                            (["foo"], "there is no command 'foo'; `deja --help` lists them"),
                            (["help", "lvels"], "did you mean 'levels'?"),
                            (["man", "recrod"], "did you mean 'record'?"),
                            (["info", "x.deja", "--jsno"], "info: there is no option '--jsno'; did you mean '--json'?"),
                            (["record", "--levle=full", "--", "true"], "did you mean '--level'?"),
                            (["info", "x.deja", "y.deja"], "info: 'y.deja' is one argument too many"),
                            (["--vresion"], "did you mean '--version'?")):
            said_is = deja(*words, code=2)
            self.assertIn(said, said_is, words)
            self.assertTrue(said_is.startswith("deja: "), said_is)


class ManPages(unittest.TestCase):
    def plain(self, page):
        """What a reader sees, without groff."""
        for written, shown in (("-", "-"), ("(aq", "'"), ("(ga", "`"), ("(ha", "^"), ("(ti", "~"), ("fB", ""), ("fI", ""), ("fR", ""),
                               ("e", "\\")):
            page = page.replace("\\" + written, shown)
        return re.sub(r"\\\[u([0-9A-F]+)\]", lambda m: chr(int(m.group(1), 16)), page)

    def test_have_each_command_and_option(self):
        program = self.plain(deja("man"))
        for name, command in COMMANDS.items():
            self.assertIn(f"\n.BR deja-{name} (1)", program)
            page = self.plain(deja("man", name))
            self.assertIn(command["summary"], page)
            rows = re.findall(r"(?m)^\.TP\n(.*)$", page)
            named = {word for row in rows for word in row.replace(",", "").split()}
            self.assertLessEqual(set(options(command)), named, name)
            for option in command["options"]:
                self.assertIn(option["text"][:40], page)
        for topic in ALL["topics"]:
            self.assertIn(topic["name"].upper() if topic["name"] == "exit-codes" else f".SS {topic['name']}",
                          program.replace("EXIT STATUS", "EXIT-CODES"))

    def test_groff_has_nothing_to_warn_of(self):
        wanted(self, "groff")
        for name in [None, *COMMANDS]:
            page = deja("man", *([name] if name else []))
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z"], input=page, capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "", name)

    def test_man_shows_them(self):
        wanted(self, "man")
        with tempfile.TemporaryDirectory() as folder:
            deja("man", "--out", folder)
            self.assertEqual(sorted(os.listdir(folder)), sorted(["deja.1", *(f"deja-{name}.1" for name in COMMANDS)]))
            shown = subprocess.run(["man", "-l", f"{folder}/deja-record.1"], capture_output=True, text=True,
                                   env={**os.environ, "LC_ALL": "C.UTF-8", "MANPAGER": "cat", "MANWIDTH": "90", "GROFF_NO_SGR": "1"})
            if "minimized" in shown.stdout + shown.stderr:
                self.skipTest("man prints a notice of a minimized system instead of pages: run unminimize")
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            self.assertIn("--checkpoint-every", re.sub(".\b", "", shown.stdout))


class Completions(unittest.TestCase):
    def test_have_each_command_option_and_choice(self):
        for shell in SHELLS:
            script = deja("completion", shell)
            self.assertEqual(json.loads(deja("completion", shell, "--json"))["script"], script)
            words = set(re.findall(r"[\w-]+", script))
            for name, command in COMMANDS.items():
                self.assertIn(name, words)
                for option in options(command):
                    self.assertIn(option.lstrip("-") if shell == "fish" else option, words, shell)
                for option in command["options"]:
                    self.assertLessEqual(set(option.get("choices", [])), words, shell)

    # What is offered behind these words; the last is what was typed of the next.
    CASES = [
        (["rep"], {"replay", "report"}),
        (["record", "--lev"], {"--level"}),
        (["record", "--level", ""], {"order", "digest", "full"}),
        (["record", "--level", "d"], {"digest"}),
        (["pack", "run.deja", "--enc"], {"--encrypt-to"}),
        (["info", "run"], {"run.deja", "run.deja.zip"}),
        (["replay", "run.deja", "--scratch", "no"], {"notes"}),
        (["help", "lev"], {"levels"}),
        (["completion", "z"], {"zsh"}),
    ]

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for name in "run.deja", "notes":
            os.mkdir(os.path.join(self.folder.name, name))
        pathlib.Path(self.folder.name, "run.deja.zip").touch()

    def check(self, offer, cases=()):
        for words, expected in [*self.CASES, *cases]:
            self.assertEqual({w.strip().rstrip("/") for w in offer(words)}, expected, words)

    def shell(self, *argv, **kwargs):
        done = subprocess.run(argv, cwd=self.folder.name, capture_output=True, text=True, timeout=60, **kwargs)
        self.assertEqual((done.returncode, done.stderr), (0, ""), argv)
        return done.stdout

    def test_bash(self):
        wanted(self, "bash")
        script = os.path.join(self.folder.name, ".completion")
        pathlib.Path(script).write_text(deja("completion", "bash"))

        def offer(words):
            """As readline calls it: what `complete` has registered, with COMP_WORDS."""
            line = ('source "$0"; [[ $(complete -p deja) == "complete -F _deja deja" ]] || exit 1; COMP_WORDS=(deja "$@"); '
                    'COMP_CWORD=$(($#)); _deja deja "${@: -1}" "${@: -2:1}"; printf "%s\\n" "${COMPREPLY[@]}"')
            return self.shell("bash", "--norc", "-c", line, script, *words).split()
        self.check(offer, [
            (["record", "--level", "=", "d"], {"digest"}),  # as readline divides --level=d
            (["record", "--level", "="], {"order", "digest", "full"}),
            (["record", "--out", "x", "--", "printf", "no"], {"notes"}),
            (["record", "--", "prin"], set(self.shell("bash", "--norc", "-c", "compgen -c prin | sort -u").split())),
            (["record", "--ranks", ""], set()),
            (["--ver"], {"--version"}),
        ])

    def test_fish(self):
        wanted(self, "fish")
        script = os.path.join(self.folder.name, ".completion")
        pathlib.Path(script).write_text(deja("completion", "fish"))

        def offer(words):
            line = " ".join(["deja", *words])
            home = {**os.environ, "HOME": self.folder.name, "XDG_CONFIG_HOME": self.folder.name + "/.config"}
            shown = self.shell("fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", script, line, env=home)
            return [entry.split("\t")[0] for entry in shown.splitlines()]
        self.check(offer)

    def test_zsh(self):
        wanted(self, "zsh")
        functions = pathlib.Path(self.folder.name, ".functions")
        functions.mkdir()
        (functions / "_deja").write_text(deja("completion", "zsh"))

        def offer(words):
            """In a terminal of zsh's own: what is listed is caught where compadd adds it."""
            typed = " ".join(["deja", *words])
            return self.shell("zsh", "-f", "-c", ZSH_TERMINAL, "zsh", str(functions), typed).split("\n")[:-1]
        self.check(offer)


# A zsh in a pseudo terminal completes a line; its compadd writes the matches down between marks.
ZSH_TERMINAL = r"""
zmodload zsh/zpty
zpty inner zsh -f -i
zpty -w inner "PROMPT=; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; bindkey '^I' complete-word"
zpty -w inner 'compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return $?; fi
  local -a found; builtin compadd -A found "$@"
  local one; for one in $found; do print -r -- "<<$one>>"; done
}'
zpty -w inner 'print -r -- READY-"NOW"'
zpty -r -m inner line '*READY-NOW*'
zpty -w -n inner "$2"$'\t'
sleep 0.1
zpty -w -n inner $'\C-u'
zpty -w inner 'print -r -- DONE-"NOW"'
zpty -r -m inner line '*DONE-NOW*'
print -r -- $line | grep -o '<<[^>]*>>' | sed 's/^<<//; s/>>$//' | sort -u
zpty -d inner
exit 0
"""

if __name__ == "__main__":
    unittest.main()
