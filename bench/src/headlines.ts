import { amount, ratioText } from "./reporting/table.ts";
import type { Result } from "./results.ts";

/** A row of the table in docs/benchmarks.md: one question, and the figures that answer it. */
export type Headline = {
  question: string;
  benchmark: string;
  /** The `what` of the figures. The first one has the baseline, if there is one. */
  figures: readonly string[];
  /** Names of the figures, if there are several. */
  labels?: readonly string[];
  baseline?: string;
};

const quantiles = ["median", "p99"] as const;
const labels = quantiles;
const both = (what: string) => quantiles.map((quantile) => `${what}${quantile}`);
const bareServer = "bare node:http";

export const headlines: readonly Headline[] = [
  {
    question: "Requests per second of an edge on one core: 100 flags, one response for all users",
    benchmark: "flags",
    figures: ["200: requests per second"],
    baseline: bareServer,
  },
  {
    question: "The same with a new user in every request",
    benchmark: "targeting",
    figures: ["100 flags, X-User-Context: requests per second"],
    baseline: bareServer,
  },
  {
    question: "The same with 1,000 flags",
    benchmark: "targeting",
    figures: ["1,000 flags, X-User-Context: requests per second"],
    baseline: bareServer,
  },
  {
    question: "Compared with Unleash: requests per second, 100 flags, a new user in every request",
    benchmark: "peers",
    figures: ["100 flags, edge vs. unleash-server: requests per second"],
    baseline: "unleash-server",
  },
  {
    question: "The same with 1,000 flags",
    benchmark: "peers",
    figures: ["1,000 flags, edge vs. unleash-server: requests per second"],
    baseline: "unleash-server",
  },
  {
    question: "Flag evaluations per second in one process, 100 flags per user",
    benchmark: "evaluation",
    figures: ["mixed, 100 flags per user: evaluations per second"],
    baseline: "the fastest of three JavaScript libraries",
  },
  {
    question: "Time from a change to 1,000 open streams",
    benchmark: "streams",
    figures: both("1,000 streams: PATCH to client, "),
    labels,
  },
  {
    question: "Time from a change to 10,000 open streams",
    benchmark: "streams",
    figures: both("10,000 streams: PATCH to client, "),
    labels,
  },
  {
    question: "Memory per open stream",
    benchmark: "streams",
    figures: ["10,000 streams: memory per stream vs. node:http"],
    baseline: bareServer,
  },
  {
    question: "Start of an edge with 100,000 flags",
    benchmark: "edge-start",
    figures: ["start to ready, from NATS vs. a bare watch"],
    baseline: "bare watch of the bucket",
  },
  {
    question: "Memory of an edge with 100,000 flags",
    benchmark: "edge-start",
    figures: ["memory after the start vs. a bare watch"],
    baseline: "bare watch of the bucket",
  },
  {
    question: "Latency of a flag change, in effect on 2 edges",
    benchmark: "changes",
    figures: both("one client, 2 edges: ").map((what) => `${what} latency`),
    labels,
  },
  {
    question: "Flag changes per second by 32 clients, in effect on 2 edges",
    benchmark: "changes",
    figures: ["2 edges: changes per second"],
  },
  {
    question: "All 1,000 OpenFeature clients have refetched after a change",
    benchmark: "refetch",
    figures: ["2xx to the last refetch, median"],
  },
  {
    question: "Time from the due time of a scheduled change to the client",
    benchmark: "schedules",
    figures: both("single changes, due to client vs. PATCH to client: "),
    labels,
    baseline: "PATCH to the client",
  },
  {
    question: "10,000 scheduled changes due in the same second: all applied",
    benchmark: "schedules",
    figures: ["10,000 at once, 1 + 1: all applied vs. PATCH"],
    baseline: "by PATCH",
  },
  {
    question: "Time from an event to the webhook receiver",
    benchmark: "webhooks",
    figures: both("single changes, event to receiver vs. PATCH: "),
    labels,
  },
  {
    question: "Webhook deliveries per second of one dispatcher",
    benchmark: "webhooks",
    figures: ["deliveries per second vs. bare got"],
    baseline: "bare HTTP client",
  },
  {
    question: "Cost of metering and plan limits: requests per second of an edge",
    benchmark: "usage",
    figures: ["200: requests per second vs. no metering and limits"],
    baseline: "without them",
  },
  {
    question: "CPU of an edge per change, 100,000 flags",
    benchmark: "growth-edge-flags",
    figures: ["CPU of the edge per change: 100,000 flags vs. 1,000"],
    baseline: "1,000 flags",
  },
  {
    question: "Latency of a flag change, in effect on 8 edges",
    benchmark: "growth-edges",
    figures: ["PATCH to 200, visible on all edges, one client, median: 8 edges vs. 1"],
    baseline: "1 edge",
  },
  {
    question: "Latency of a flag change with 1,000,000 history and audit entries",
    benchmark: "growth-records",
    figures: ["PATCH to 200, one client, median: 1,000,000 rows vs. 1,000"],
    baseline: "1,000 entries",
  },
];

/** The cells of a row. A figure that was not measured is a dash. */
export function headlineCells(
  headline: Headline,
  results: ReadonlyMap<string, Result>,
): readonly string[] {
  const { question, benchmark, baseline, labels: names = [] } = headline;
  const figures = results.get(benchmark)?.figures ?? [];
  const found = headline.figures.map((what) => figures.find((figure) => figure.what === what));
  const measured = found.map((figure, index) =>
    figure === undefined
      ? "–"
      : `${names[index] ?? ""} ${amount(figure.measured, figure.unit)}`.trim(),
  );
  const [first] = found;
  const compared =
    baseline === undefined || first?.baseline === undefined
      ? ["", ""]
      : [`${amount(first.baseline, first.unit)} (${baseline})`, ratioText(first)];
  const link = `[${benchmark}](../bench/results/${benchmark}.md)`;
  return [question, measured.join(", "), ...compared, link];
}
