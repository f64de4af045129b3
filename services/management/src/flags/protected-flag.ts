import { isDeepStrictEqual } from "node:util";
import type { Problem } from "@halyard/http";
import type { Transaction } from "@halyard/postgres";
import type { Proposal } from "../protection/proposal.ts";
import { type Approval, approvalNeeded } from "../protection/protection.ts";
import {
  type Decision,
  differingMembers,
  type FlagEnvironment,
  type FlagInEnvironment,
  patchOf,
  type StoredState,
  settingsOf,
} from "./flag.ts";
import { isOnlyRequiredOn } from "./reference-store.ts";

/** A decided change of a flag, before it is written. */
type Change = {
  current: FlagInEnvironment;
  decision: Decision;
  environments?: readonly FlagEnvironment[];
  isExempt?: () => Promise<boolean>;
};

/**
 * Rejects a change of a protected environment without an approval. A change of settings alone, such as the name, changes
 * no answer and needs none. The caller has locked the flag and its environment.
 */
export async function checkApproved(
  { tx, approval }: { tx: Transaction; approval?: Approval | undefined },
  change: Change,
): Promise<Problem | undefined> {
  if (approval !== undefined) return undefined;
  const { current, decision, environments = [], isExempt } = change;
  const { environment } = current;
  const [state] = decision.states;
  const { variations } = decision.flag;
  const { id: flagId, variationsVersion } = current.flag;
  const proposals: Proposal[] = [];
  const guarded = new Map<string, FlagEnvironment>();
  if (variations !== null && variations !== current.flag.variations) {
    for (const each of environments) if (each.protection !== null) guarded.set(each.id, each);
    const base_version = variationsVersion ?? 1;
    if (guarded.size > 0)
      proposals.push({ kind: "flag_variations", flag_id: flagId, variations, base_version });
  }
  const isNeeded =
    state !== undefined &&
    environment.protection !== null &&
    !(await isTurnedOff(tx, current, state)) &&
    !(await isExempt?.());
  if (isNeeded) {
    guarded.set(environment.id, environment);
    proposals.push(stateProposal(current.state, state));
  }
  if (guarded.size === 0) return undefined;
  const changesSettings = !isDeepStrictEqual(settingsOf(decision.flag), settingsOf(current.flag));
  const advice = changesSettings ? settingsApart : "";
  return approvalNeeded([...guarded.values()], { proposals, advice });
}

const settingsApart =
  " It does not contain settings of the flag, such as its name. They need no request: send them alone.";

/** Returns whether a change is the exception `off`: it only turns the flag off, and no other flag turns on by that. */
async function isTurnedOff(
  tx: Transaction,
  { flag, state: before, environment }: FlagInEnvironment,
  { content }: StoredState,
): Promise<boolean> {
  if (environment.protection?.without_approval.includes("off") !== true) return false;
  const [member, ...others] = differingMembers(before.content, content);
  if (member !== "enabled" || others.length > 0 || content.enabled) return false;
  return isOnlyRequiredOn(tx, flag, environment.id);
}

/** Returns the proposal of a changed state, with the members that differ. */
function stateProposal(before: StoredState, after: StoredState): Proposal {
  const { flagId: flag_id, environmentId: environment_id, version: base_version } = before;
  const patch = patchOf(before.content, after.content);
  return { kind: "state", flag_id, environment_id, patch, base_version };
}
