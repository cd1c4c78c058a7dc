"""Prints the measurements of bench/http/growth as a table in Markdown; exit code 1 if there were refusals, and the
figures are of the other rounds."""
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
    failed = False
    for (kind, connections), both in found.items():
        pairs = list(zip(both.get("small", []), both.get("large", [])))
        wrong = sum(one["errors"] for pair in pairs for one in pair)
        pairs = [pair for pair in pairs if not any(one["errors"] for one in pair)]
        cells = [kind + (" (%d errors)" % wrong if wrong else ""), str(connections)]
        failed = failed or wrong > 0
        if pairs:
            for which in (0, 1):
                cells += [cell([pair[which]["rate"] for pair in pairs]),
                          "%.1f" % statistics.median(pair[which]["cpu_us"] for pair in pairs)]
            cells.append("%.3f" % statistics.median(large["misses"] for small, large in pairs))
            cells.append(ratio([large["rate"] / small["rate"] for small, large in pairs]))
            cells.append(ratio([small["cpu_us"] / large["cpu_us"] for small, large in pairs if large["cpu_us"]]))
        if pairs or wrong:
            print("| " + " | ".join(cells + [""] * (9 - len(cells))) + " |")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
