import { number, table } from "../reporting/table.ts";
import { type CpuProfile, selfTimes } from "./cpu-profile.ts";
import { partOf } from "./part-of.ts";

/** A profile and the work during it. */
export type ProfiledRun = {
  profile: CpuProfile;
  run: { answers: number; fromMs: number; toMs: number };
};

const shownFunctions = 20;

/** Compares self time per response by function, largest differences first. */
export function compareProfiles(ours: ProfiledRun, baseline: ProfiledRun): string {
  return compared("Function", perAnswer(ours), perAnswer(baseline));
}

/** Compares self time per response by component. */
export function compareParts(ours: ProfiledRun, baseline: ProfiledRun): string {
  return compared("Part", byPart(perAnswer(ours)), byPart(perAnswer(baseline)));
}

type Times = ReadonlyMap<string, number>;

function byPart(times: Times): Times {
  const parts = new Map<string, number>();
  for (const [name, time] of times) parts.set(partOf(name), (parts.get(partOf(name)) ?? 0) + time);
  return parts;
}

function compared(what: string, own: Times, bare: Times): string {
  const names = [...new Set([...own.keys(), ...bare.keys()])];
  const rows = names
    .map((name) => ({ name, own: own.get(name) ?? 0, bare: bare.get(name) ?? 0 }))
    .sort((one, other) => Math.abs(other.own - other.bare) - Math.abs(one.own - one.bare));
  return table([
    [what, "Edge", "Bare", "Difference"],
    ["all", number(sum(own)), number(sum(bare)), number(sum(own) - sum(bare))],
    ...rows
      .slice(0, shownFunctions)
      .map((row) => [row.name, number(row.own), number(row.bare), number(row.own - row.bare)]),
  ]);
}

/** Lists self time per response by function, largest first. */
export function describeProfile(run: ProfiledRun): string {
  const times = perAnswer(run);
  const total = sum(times);
  return table([
    ["Function", "µs", "Share"],
    ["all", number(total), "100 %"],
    ...[...times]
      .slice(0, shownFunctions)
      .map(([name, time]) => [name, number(time), `${((time / total) * 100).toFixed(1)} %`]),
  ]);
}

function perAnswer({ profile, run }: ProfiledRun): Times {
  return new Map([...selfTimes(profile, run)].map(([name, time]) => [name, time / run.answers]));
}

function sum(times: Times): number {
  return [...times.values()].reduce((total, time) => total + time, 0);
}
