"""torch.compile sees nothing of Deja's: dynamo calls Deja's functions as they are, and traces none of them."""


def install(module):
    """module: torch._dynamo.trace_rules, or what came before it, torch._dynamo.skipfiles."""
    if hasattr(module, "add"):
        module.add("deja")
