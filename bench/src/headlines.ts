import { amount, ratioText } from "./reporting.ts";
import type { Result } from "./results.ts";

/**
 * Columns: question, benchmark, figure, name of the baseline. `<q>` means two figures, the median and the p99. Only the
 * median may have a baseline.
 */
const table = `
How many requests per second does one core serve through the gateway, as deployed? (100 flags) | gateway | 200: requests per second through the gateway | the edge alone
How much CPU does the gateway add to a request? | gateway | 200: CPU of the gateway for each request vs. the edge | CPU of the edge
How many requests per second does an edge serve on one core? (100 flags, the same values for all users) | flags | 200: requests per second | bare node:http
… with a new user in every request? | targeting | 100 flags, X-User-Context: requests per second | bare node:http
… with 1,000 flags and a new user in every request? | targeting | 1,000 flags, X-User-Context: requests per second | bare node:http
How does an edge compare with Unleash? (requests per second, 100 flags, a new user in every request) | peers | 100 flags, edge vs. unleash-server: requests per second | unleash-server
… with 1,000 flags? | peers | 1,000 flags, edge vs. unleash-server: requests per second | unleash-server
How many flags per second does the evaluation library evaluate? (100 flags per user) | evaluation | mixed, 100 flags per user: evaluations per second | the fastest of three JavaScript libraries
How fast does an application start with 10,000 flags in the server SDK? | sdk-start | createClient to ready vs. fetch and JSON.parse | fetch and JSON.parse
How much memory do 10,000 flags in the server SDK need? | sdk-start | memory above an idle process |
How much of a core do 50,000 evaluations per second in an application cost? (99 flags) | sdk-evaluation | 50,000 evaluations per second of 99 flags: share of a core |
… 999 flags? | sdk-evaluation | 50,000 evaluations per second of 999 flags: share of a core |
How soon after a PATCH do 1,000 applications with the server SDK have the change? | sdk-streams | all streams: PATCH to stream, <q> |
How soon after a PATCH do 1,000 open streams receive the change? | streams | 1,000 streams: PATCH to client, <q> |
… 10,000 open streams? | streams | 10,000 streams: PATCH to client, <q> |
… to the last of 20,000 open streams on two edges? | two-edges | PATCH to the last stream: <q> | bare push to as many
How much memory does an open stream need? | streams | 10,000 streams: memory per stream vs. node:http | bare node:http
How long does an edge with 100,000 flags take to start? | edge-start | start to ready, from NATS vs. a bare watch | bare watch of the bucket
How much memory does an edge with 100,000 flags need? | edge-start | memory after the start vs. a bare watch | bare watch of the bucket
How long does a flag change take until 2 edges serve it? | changes | one client, 2 edges: <q> latency |
How many flag changes per second are possible? (32 clients, 2 edges) | changes | 2 edges: changes per second |
How long do 1,000 OpenFeature clients take to refetch after a change? | refetch | 2xx to the last refetch, median |
How precise are schedules? (from the due time to the client) | schedules | single changes, due to client vs. PATCH to client: <q> | PATCH to the client
How long do 10,000 changes take that are due in the same second? | schedules | 10,000 at once, 1 + 1: all applied vs. PATCH | by PATCH
How soon does a webhook receiver get an event? | webhooks | single changes, event to receiver vs. PATCH: <q> |
How many deliveries per second does one webhook dispatcher send? | webhooks | deliveries per second vs. bare got | bare HTTP client
What do metering and plan limits cost? (requests per second of an edge) | usage | 200: requests per second vs. no metering and limits | without them
What does a session cost, compared with an API key? (CPU of a request) | people | 404, by session vs. by key: CPU per request | the API key
How much memory does a person with a role need in a service? (100,000 people) | people | 100,000 people: memory of each |
Does a change cost more with more flags? (CPU of an edge, 100,000 flags) | growth-edge-flags | CPU of the edge per change: 100,000 flags vs. 1,000 | 1,000 flags
Does a change take longer with more edges? (8 edges) | growth-edges | PATCH to 200, visible on all edges, one client, median: 8 edges vs. 1 | 1 edge
… with a longer history? (1,000,000 entries) | growth-records | PATCH to 200, one client, median: 1,000,000 rows vs. 1,000 | 1,000 entries
`;

const quantiles = ["median", "p99"];
type Headline = (typeof headlines)[number];

/** The rows of the table in docs/benchmarks.md: a question, and the figures that answer it. */
export const headlines = table
  .trim()
  .split("\n")
  .map((line) => {
    const [question = "", benchmark = "", figure = "", baseline] = line
      .split("|")
      .map((cell) => cell.trim());
    const labels = figure.includes("<q>") ? quantiles : [""];
    const figures = labels.map((label) => figure.replace("<q>", label));
    return { question, benchmark, figures, labels, baseline: baseline || undefined };
  });

/** Returns the cells of a row, with a dash for a figure that was not measured. */
export function headlineCells(
  { question, benchmark, figures, labels, baseline }: Headline,
  results: ReadonlyMap<string, Result>,
): readonly string[] {
  const result = results.get(benchmark);
  const found = figures.map((what) => result?.figures.find((figure) => figure.what === what));
  const measured = found.map((figure, index) =>
    figure === undefined ? "–" : `${labels[index]} ${amount(figure.measured, figure.unit)}`.trim(),
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
