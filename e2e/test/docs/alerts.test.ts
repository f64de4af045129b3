import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { parse } from "yaml";

type Rule = {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; runbook_url: string };
};

const read = (name: string) => readFileSync(new URL(`../../../${name}`, import.meta.url), "utf8");
const rules: Rule[] = parse(read("deploy/prometheus/alerts.yml")).groups.flatMap(
  (group: { rules: Rule[] }) => group.rules,
);
const metrics = new Set(
  [...read("docs/metrics.md").matchAll(/^\| `(halyard_\w+)`/gm)].map(([, name]) => name),
);
const runbooks = read("docs/runbooks.md");
const anchors = [...runbooks.matchAll(/^## (.*)$/gm)].map(
  ([, heading = ""]) =>
    `{{ $externalLabels.halyard_repository }}docs/runbooks.md#${heading
      .toLowerCase()
      .replace(/[^\w\s-]/g, "")
      .replaceAll(" ", "-")}`,
);

describe("given deploy/prometheus/alerts.yml", () => {
  it.each(rules)("$alert uses only metrics that docs/metrics.md lists", ({ expr }) => {
    const used = (expr.match(/halyard_\w+/g) ?? []).map((name) =>
      metrics.has(name) ? name : name.replace(/_(bucket|count|sum)$/, ""),
    );
    expect(used.filter((name) => !metrics.has(name))).toEqual([]);
  });

  it.each(rules)("$alert has a section in docs/runbooks.md", ({ alert, annotations }) => {
    expect(anchors).toContain(annotations.runbook_url);
    expect(runbooks).toContain(`\`${alert}\``);
  });
});
