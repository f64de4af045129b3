import type { Bench } from "../benchmark.ts";
import { type Child, startChild } from "../processes/child-process.ts";
import { below } from "../reporting.ts";
import { alternate } from "../statistics.ts";
import type { Measured, ReferencesApi } from "./references-process.ts";

/** Flags of one user in a measurement. */
const flags = 100;

const lookups: readonly Measured[] = ["1,000 entries", "1,000,000 entries"];
const evaluations: readonly Measured[] = [
  "no reference",
  "a requirement by user",
  "a constant requirement",
  "an audience",
];

/** Maximum nanoseconds for each flag and user, beyond the same flag without the reference. */
const mostForReference = 60;
/** A constant requirement leaves nothing to evaluate. The rest is noise. */
const mostForConstant = 5;

/** Adds the rows of lists, audiences and requirements. */
export async function measureReferences(bench: Bench): Promise<void> {
  const child: Child<ReferencesApi> = await startChild(bench, {
    ...{ program: "evaluation/references-process.ts", core: "server" },
    environment: { NODE_ENV: "production" },
  });
  const names = [...lookups, ...evaluations];
  for (const name of names) await child.call.speed(name, bench.quick ? 10 : 1_000);
  const sides = names.map((name) => [name, () => child.call.speed(name, bench.quick ? 10 : 400)]);
  const medians = await alternate(bench, 7, Object.fromEntries(sides));
  const nanoseconds = (name: Measured) => medians[name]?.nanoseconds ?? Number.NaN;
  bench.figure(
    "membership in a list of 1,000,000 entries",
    "ns",
    nanoseconds("1,000,000 entries"),
    {
      baseline: nanoseconds("1,000 entries"),
      goal: below(200),
    },
  );
  const added = (name: Measured) => (nanoseconds(name) - nanoseconds("no reference")) / flags;
  const what = (name: Measured) => `rules, ${flags} flags per user: added by ${name}`;
  for (const name of ["a requirement by user", "an audience"] as const)
    bench.figure(what(name), "ns", added(name), { goal: below(mostForReference) });
  bench.figure(what("a constant requirement"), "ns", added("a constant requirement"), {
    goal: below(mostForConstant),
  });
  await child.stop();
}
