import { readFileSync } from "node:fs";
import { dashboards } from "@halyard/observability/dashboards";
import { describe, expect, it } from "@jest/globals";
import { parse } from "yaml";

type Rule = {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; runbook_url: string };
};
type RecordingRule = { record: string; expr: string };

const read = (name: string) => readFileSync(new URL(`../../../${name}`, import.meta.url), "utf8");
const readRules = <T>(name: string): T[] =>
  parse(read(`deploy/observability/prometheus/${name}`)).groups.flatMap(
    (group: { rules: T[] }) => group.rules,
  );
const rules = readRules<Rule>("alerts.yml");
const recordingRules = readRules<RecordingRule>("recording-rules.yml");
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

/** Returns the metrics of Halyard in a query, without those that a recording rule names. */
const metricsIn = (expression: string): string[] =>
  (expression.match(/(?<![\w:])halyard_\w+(?!:)\b/g) ?? []).map((name) =>
    metrics.has(name) ? name : name.replace(/_(bucket|count|sum)$/, ""),
  );
const recordedIn = (expression: string): string[] => expression.match(/\w+:\w+:\w+/g) ?? [];
const recorded = new Set(recordingRules.map(({ record }) => record));
const unknownIn = (expression: string) => [
  ...metricsIn(expression).filter((name) => !metrics.has(name)),
  ...recordedIn(expression).filter((name) => !recorded.has(name)),
];

describe("given the rules of Prometheus", () => {
  it.each(rules)("$alert uses only metrics that docs/metrics.md lists", ({ expr }) => {
    expect(unknownIn(expr)).toEqual([]);
  });

  it.each(recordingRules)("$record uses only metrics that docs/metrics.md lists", ({ expr }) => {
    expect(unknownIn(expr)).toEqual([]);
  });

  it.each(rules)("$alert has a severity and a section in docs/runbooks.md", (rule) => {
    expect(["critical", "warning"]).toContain(rule.labels.severity);
    expect(anchors).toContain(rule.annotations.runbook_url);
    expect(runbooks).toContain(`\`${rule.alert}\``);
  });

  it.each(rules)("$alert has a unit test in which it is quiet, fires and ends", ({ alert }) => {
    const { tests } = parse(read("deploy/observability/prometheus/alerts.test.yml")) as {
      tests: { promql_expr_test: { expr: string; exp_samples: unknown[] }[] }[];
    };
    const counts = tests
      .map((test) => test.promql_expr_test.filter(({ expr }) => expr.includes(`"${alert}"`)))
      .find((found) => found.length > 0)
      ?.map(({ exp_samples: samples }) => samples.length);
    expect(counts).toEqual([0, 1, 0]);
  });
});

describe("given the dashboards of Grafana", () => {
  const panels = dashboards.flatMap(({ title, panels }) =>
    panels.map((panel) => ({ name: `${title}, ${panel.title}`, ...panel })),
  );

  it.each(panels)("$name shows only metrics that docs/metrics.md lists", ({ queries }) => {
    expect(queries.flatMap(({ expression }) => unknownIn(expression))).toEqual([]);
  });

  it("shows every metric that docs/metrics.md lists", () => {
    const expressions = [
      ...panels.flatMap(({ queries }) => queries.map(({ expression }) => expression)),
      ...recordingRules.map(({ expr }) => expr),
    ];
    const shown = new Set(expressions.flatMap(metricsIn));
    expect([...metrics].filter((name) => name !== undefined && !shown.has(name))).toEqual([]);
  });

  it("shows the exemplars of the propagation, the only ones that processes export", () => {
    const path = "deploy/observability/grafana/dashboards";
    const targets = dashboards.flatMap(({ uid }) =>
      JSON.parse(read(`${path}/${uid}.json`)).panels.flatMap(
        (panel: { targets: { expr: string; exemplar?: boolean }[] }) => panel.targets,
      ),
    );
    expect(targets.filter(({ exemplar }) => exemplar).map(({ expr }) => expr)).toEqual([
      "histogram_quantile(0.99, sum by (le) (rate(halyard_change_propagation_seconds_bucket[$__rate_interval])))",
    ]);
  });

  it("names only alerts that exist", () => {
    const named = panels.flatMap(({ description }) => description.match(/Halyard[A-Z]\w+/g) ?? []);
    expect(named.filter((name) => !rules.some(({ alert }) => alert === name))).toEqual([]);
    expect(named).not.toEqual([]);
  });
});
