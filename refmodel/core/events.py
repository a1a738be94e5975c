"""Events: what happened inside the engine, in order, for those who check it (docs/traces.md)."""


def note(events: list[dict], name: str, facts: dict[str, object]) -> None:
    """Append an event. A fact that takes time to find out may be a function, which is called.

    A read joins an earlier one of the same components, if only reads came between."""
    event = {"event": name} | {
        key: fact() if callable(fact) else fact for key, fact in facts.items()
    }
    if name == "read":
        for earlier in reversed(events):
            if earlier["event"] != "read":
                break
            if (earlier["leg"], earlier["devices"]) == (event["leg"], event["devices"]):
                earlier["stripes"] += [
                    stripe for stripe in event["stripes"] if stripe not in earlier["stripes"]
                ]
                return
    events.append(event)
