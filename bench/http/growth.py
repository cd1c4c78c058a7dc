"""Prints the measurements of bench/http/growth as a table in Markdown."""
import json
import statistics
import sys


def cell(values):
    return "{:,.0f}".format(statistics.median(values))


def ratio(ratios):
    return "%.2f (%.2f to %.2f)" % (statistics.median(ratios), min(ratios), max(ratios))


def main(path):
    found = {}
    for line in open(path):
        one = json.loads(line)
        found.setdefault((one["kind"], one["connections"]), {}).setdefault(one["server"], []).append(one)
    print("| request | connections | few, /s | CPU us | many, /s | CPU us | its misses | rate, many to few | CPU, few to many |")
    print("|---|--:|--:|--:|--:|--:|--:|---|---|")
    for (kind, connections), both in found.items():
        pairs = list(zip(both.get("small", []), both.get("large", [])))
        if not pairs:
            continue
        wrong = sum(one["errors"] for pair in pairs for one in pair)
        cells = [kind + (" (%d errors)" % wrong if wrong else ""), str(connections)]
        for which in (0, 1):
            cells += [cell([pair[which]["rate"] for pair in pairs]),
                      "%.1f" % statistics.median(pair[which]["cpu_us"] for pair in pairs)]
        cells.append("%.3f" % statistics.median(large["misses"] for small, large in pairs))
        cells.append(ratio([large["rate"] / small["rate"] for small, large in pairs]))
        cells.append(ratio([small["cpu_us"] / large["cpu_us"] for small, large in pairs if large["cpu_us"]]))
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
