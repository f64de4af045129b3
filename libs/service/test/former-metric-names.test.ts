import { describe, expect, it } from "@jest/globals";
import { Counter, Histogram, Registry } from "prom-client";
import { formerMetricNames, withFormerNames } from "../src/former-metric-names.ts";

describe("metrics under their former names", () => {
  it("repeat the samples of renamed metrics", async () => {
    const registry = new Registry();
    const registers = [registry];
    new Counter({ name: "new_total", help: "Counts.", labelNames: ["kind"], registers }).inc({
      kind: "new_total",
    });
    new Histogram({ name: "new_seconds", help: "Measures.", buckets: [1], registers }).observe(2);
    new Counter({ name: "same_total", help: "Stays.", registers });
    const text = withFormerNames(await registry.metrics(), {
      new_total: "old_total",
      new_seconds: "old_seconds",
    });
    expect(text.split("\n").filter((line) => line.includes("old"))).toEqual([
      "# HELP old_total Deprecated: use new_total.",
      "# TYPE old_total counter",
      'old_total{kind="new_total"} 1',
      "# HELP old_seconds Deprecated: use new_seconds.",
      "# TYPE old_seconds histogram",
      'old_seconds_bucket{le="1"} 0',
      'old_seconds_bucket{le="+Inf"} 1',
      "old_seconds_sum 2",
      "old_seconds_count 1",
    ]);
    expect(text).toContain(await registry.metrics());
  });

  it("are different from all current names", () => {
    const former = Object.values(formerMetricNames);
    expect(new Set(former).size).toBe(former.length);
    expect(former.filter((name) => name in formerMetricNames)).toEqual([]);
  });
});
