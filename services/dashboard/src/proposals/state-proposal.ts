import type { FlagState, State } from "../state/flag-state.ts";
import type { Exception } from "../state/protection.ts";
import { differingMembers, memberNames, requestFor, stateDifferences } from "../state/state.ts";
import { type Proposal, titleOf } from "./proposal.ts";

/** A flag in an environment. */
export type Place = {
  flag: { id: string; key: string };
  environment: { id: string; name: string };
};

type Stored = Pick<FlagState, "version">;

/** Proposes to give a flag another state, on the version that the person saw. */
export function stateProposal(
  { flag, environment }: Place,
  { version }: Stored,
  { before, after }: { before: State; after: State },
): Proposal {
  const differences = stateDifferences(before, after);
  const place = { flag_id: flag.id, environment_id: environment.id, base_version: version };
  return {
    title: titleOf(`${flag.key} in ${environment.name}`, differences),
    changes: [{ kind: "state", ...place, patch: requestFor(after) }],
    differences,
  };
}

/** Proposes to turn a flag on or off, at once or at a time. */
export function switchProposal(
  { flag, environment }: Place,
  {
    enabled,
    version,
    applyAt,
  }: { enabled: boolean; version?: number | undefined; applyAt?: string },
): Proposal {
  const place = { flag_id: flag.id, environment_id: environment.id };
  const base = version === undefined ? {} : { base_version: version };
  const word = enabled ? "on" : "off";
  return {
    title: titleOf(`Turn ${flag.key} ${word} in ${environment.name}`, []),
    changes: [{ kind: "state", ...place, ...base, patch: { enabled } }],
    differences: [
      { label: flag.key, before: enabled ? "off" : "on", after: enabled ? "on" : "off" },
    ],
    ...(applyAt !== undefined && { applyAt }),
  };
}

/** Returns the exception that a change may be: it turns the flag off, and changes nothing else. */
export function exceptionOf(before: State, after: State): Exception | undefined {
  const [member, ...others] = differingMembers(before, after, memberNames);
  return member === "enabled" && others.length === 0 && !after.enabled ? "off" : undefined;
}
