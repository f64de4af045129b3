import { amount, ratioText } from "./reporting/table.ts";
import type { Result } from "./results.ts";

/** A row of the table in docs/benchmarks.md: one question, and the figures that answer it. */
export type Headline = {
  question: string;
  benchmark: string;
  /** The `what` of the figures. Only the first one may have a baseline. */
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
    question:
      "How many requests per second does an edge serve on one core? (100 flags, the same values for all users)",
    benchmark: "flags",
    figures: ["200: requests per second"],
    baseline: bareServer,
  },
  {
    question: "… with a new user in every request?",
    benchmark: "targeting",
    figures: ["100 flags, X-User-Context: requests per second"],
    baseline: bareServer,
  },
  {
    question: "… with 1,000 flags and a new user in every request?",
    benchmark: "targeting",
    figures: ["1,000 flags, X-User-Context: requests per second"],
    baseline: bareServer,
  },
  {
    question:
      "How does an edge compare with Unleash? (requests per second, 100 flags, a new user in every request)",
    benchmark: "peers",
    figures: ["100 flags, edge vs. unleash-server: requests per second"],
    baseline: "unleash-server",
  },
  {
    question: "… with 1,000 flags?",
    benchmark: "peers",
    figures: ["1,000 flags, edge vs. unleash-server: requests per second"],
    baseline: "unleash-server",
  },
  {
    question:
      "How many flags per second does the evaluation library evaluate? (100 flags per user)",
    benchmark: "evaluation",
    figures: ["mixed, 100 flags per user: evaluations per second"],
    baseline: "the fastest of three JavaScript libraries",
  },
  {
    question: "How fast does an application start with 10,000 flags in the server SDK?",
    benchmark: "sdk-start",
    figures: ["createClient to ready vs. fetch and JSON.parse"],
    baseline: "fetch and JSON.parse",
  },
  {
    question: "How much memory do 10,000 flags in the server SDK need?",
    benchmark: "sdk-start",
    figures: ["memory above an idle process"],
  },
  {
    question:
      "How much of a core do 50,000 evaluations per second in an application cost? (99 flags)",
    benchmark: "sdk-evaluation",
    figures: ["50,000 evaluations per second of 99 flags: share of a core"],
  },
  {
    question: "… 999 flags?",
    benchmark: "sdk-evaluation",
    figures: ["50,000 evaluations per second of 999 flags: share of a core"],
  },
  {
    question: "How soon after a PATCH do 1,000 applications with the server SDK have the change?",
    benchmark: "sdk-streams",
    figures: both("all streams: PATCH to stream, "),
    labels,
  },
  {
    question: "How soon after a PATCH do 1,000 open streams receive the change?",
    benchmark: "streams",
    figures: both("1,000 streams: PATCH to client, "),
    labels,
  },
  {
    question: "… 10,000 open streams?",
    benchmark: "streams",
    figures: both("10,000 streams: PATCH to client, "),
    labels,
  },
  {
    question: "How much memory does an open stream need?",
    benchmark: "streams",
    figures: ["10,000 streams: memory per stream vs. node:http"],
    baseline: bareServer,
  },
  {
    question: "How long does an edge with 100,000 flags take to start?",
    benchmark: "edge-start",
    figures: ["start to ready, from NATS vs. a bare watch"],
    baseline: "bare watch of the bucket",
  },
  {
    question: "How much memory does an edge with 100,000 flags need?",
    benchmark: "edge-start",
    figures: ["memory after the start vs. a bare watch"],
    baseline: "bare watch of the bucket",
  },
  {
    question: "How long does a flag change take until 2 edges serve it?",
    benchmark: "changes",
    figures: both("one client, 2 edges: ").map((what) => `${what} latency`),
    labels,
  },
  {
    question: "How many flag changes per second are possible? (32 clients, 2 edges)",
    benchmark: "changes",
    figures: ["2 edges: changes per second"],
  },
  {
    question: "How long do 1,000 OpenFeature clients take to refetch after a change?",
    benchmark: "refetch",
    figures: ["2xx to the last refetch, median"],
  },
  {
    question: "How precise are schedules? (from the due time to the client)",
    benchmark: "schedules",
    figures: both("single changes, due to client vs. PATCH to client: "),
    labels,
    baseline: "PATCH to the client",
  },
  {
    question: "How long do 10,000 changes take that are due in the same second?",
    benchmark: "schedules",
    figures: ["10,000 at once, 1 + 1: all applied vs. PATCH"],
    baseline: "by PATCH",
  },
  {
    question: "How soon does a webhook receiver get an event?",
    benchmark: "webhooks",
    figures: both("single changes, event to receiver vs. PATCH: "),
    labels,
  },
  {
    question: "How many deliveries per second does one webhook dispatcher send?",
    benchmark: "webhooks",
    figures: ["deliveries per second vs. bare got"],
    baseline: "bare HTTP client",
  },
  {
    question: "What do metering and plan limits cost? (requests per second of an edge)",
    benchmark: "usage",
    figures: ["200: requests per second vs. no metering and limits"],
    baseline: "without them",
  },
  {
    question: "Does a change cost more with more flags? (CPU of an edge, 100,000 flags)",
    benchmark: "growth-edge-flags",
    figures: ["CPU of the edge per change: 100,000 flags vs. 1,000"],
    baseline: "1,000 flags",
  },
  {
    question: "Does a change take longer with more edges? (8 edges)",
    benchmark: "growth-edges",
    figures: ["PATCH to 200, visible on all edges, one client, median: 8 edges vs. 1"],
    baseline: "1 edge",
  },
  {
    question: "… with a longer history? (1,000,000 entries)",
    benchmark: "growth-records",
    figures: ["PATCH to 200, one client, median: 1,000,000 rows vs. 1,000"],
    baseline: "1,000 entries",
  },
];

/** Returns the cells of a row, with a dash for a figure that was not measured. */
export function headlineCells(
  headline: Headline,
  results: ReadonlyMap<string, Result>,
): readonly string[] {
  const { question, benchmark, baseline, labels: names = [] } = headline;
  const result = results.get(benchmark);
  const figures = result?.figures ?? [];
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
  const origin =
    result === undefined ? "–" : `${result.measuredAt.slice(0, 10)}, ${result.machine.cpu}`;
  return [question, measured.join(", "), ...compared, origin, link];
}
