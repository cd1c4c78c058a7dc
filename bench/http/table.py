"""Prints the measurements of bench/http/run as a table in Markdown. No figure is told of refusals; exit code 1 if some
were Partita's."""
import json
import sys

# Times better by CPU per request: floor and target, by kind; for filter they depend on the number of entities.
GOALS = {"insert": (10, 20), "egt": (20, 40), "point": (10, 20), "range": (5, 10)}
FILTER_GOALS = {10000: (1.5, 3), 100000: (10, 20)}
# One connection, where the round trip decides: insert also by rate.
SINGLE_GOALS = {"insert": "5, rate 2.5", "point": "8"}


def goal(kind, rows, connections):
    if connections == 1:
        return SINGLE_GOALS.get(kind, "")
    goals = FILTER_GOALS.get(rows) if kind == "filter" else GOALS.get(kind)
    return "%g / %g" % goals if goals else ""


def main(path):
    found = {}
    for line in open(path):
        one = json.loads(line)
        found[(one["server"], one["rows"], one["kind"], one["connections"])] = one
    print("| entities | request | connections | partita /s | p99 ms | CPU us | Azurite /s | p99 ms | CPU us | "
          "times by CPU | by rate | floor / target by CPU |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for rows, kind, connections in dict.fromkeys(key[1:] for key in found):
        ours = found.get(("partita", rows, kind, connections))
        peer = found.get(("azurite", rows, kind, connections))
        cells = ["{:,}".format(rows), kind, str(connections)]
        for one in (ours, peer):
            if one is None:
                cells += ["", "", ""]
                continue
            if one["errors"]:
                cells += ["%d errors" % one["errors"], "", ""]
                continue
            cells += ["{:,.0f}".format(one["rate"]), "%.2f" % (one["p99_us"] / 1000), "%.1f" % one["cpu_us"]]
        both = all(one is not None and not one["errors"] for one in (ours, peer))
        cells += ["%.1f" % (peer["cpu_us"] / ours["cpu_us"]) if both and ours["cpu_us"] else "",
                  "%.1f" % (ours["rate"] / peer["rate"]) if both else "", goal(kind, rows, connections)]
        print("| " + " | ".join(cells) + " |")
    return 1 if any(one["errors"] for one in found.values() if one["server"] == "partita") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
