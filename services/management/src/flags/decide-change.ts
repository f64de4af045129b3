import { isDeepStrictEqual } from "node:util";
import type { EventName, FlagEvent, UpdateFlag } from "@halyard/contracts";
import type { AuditEntry } from "../audit/audit-entry.ts";
import { entryOf, eventMessage } from "../outbox/outbox-message.ts";
import type { Decision } from "./decision.ts";
import type { Flag, FlagEnvironment, FlagState } from "./flag.ts";
import { flagEntry } from "./flag-entry.ts";
import { flagEvent } from "./flag-event.ts";
import { momentAfter, type Occasion } from "./occasion.ts";
import { auditEntry, auditedSettings, auditedState, historyEntry } from "./records.ts";

/**
 * A change of a flag's settings, of its state in one environment, or of both. What is given but not
 * different is no change: then there is no entry, no event and no new version.
 *
 * One change can make up to three events, always in this order: `flag.updated` for the settings,
 * `flag.toggled` when it was switched on or off, `flag_state.updated` for rollout and rules.
 */
export function decideChange(
  current: { flag: Flag; state: FlagState; environment: FlagEnvironment },
  request: UpdateFlag,
  occasion: Occasion,
): (Decision & { state: FlagState }) | "unchanged" {
  const settings = changedSettings(current.flag, request);
  const stateSettings = changedState(current.state, request);
  const names = eventNames(settings, stateSettings);
  if (names.length === 0) return "unchanged";

  const at = momentAfter(current.flag.lastEventAt, occasion.now);
  const lastEventAt = new Date(at.getTime() + names.length - 1);
  const version = current.flag.version + 1;
  const flag: Flag = { ...current.flag, ...settings, version, lastEventAt, updatedAt: at };
  const stateChanged = Object.keys(stateSettings).length > 0;
  const state: FlagState = stateChanged
    ? { ...current.state, ...stateSettings, version, updatedAt: at }
    : current.state;

  const events = names.map((name, index) =>
    flagEvent(
      name,
      {
        flag,
        environment: current.environment,
        state,
        before: current.state,
        ...(name === "flag.updated" ? { changes: changesOf(current.flag, settings) } : {}),
        at: new Date(at.getTime() + index),
      },
      occasion,
    ),
  );
  return {
    flag,
    state,
    states: stateChanged ? [state] : [],
    history: stateChanged ? [historyEntry(state, occasion)] : [],
    audit: audited(current, { flag, state }, occasion),
    messages: [
      ...events.map(eventMessage),
      ...(stateChanged ? [entryOf(flagEntry(flag, state))] : []),
    ],
  };
}

type Settings = Partial<Pick<Flag, "name" | "description" | "type">>;
type StateSettings = Partial<Pick<FlagState, "enabled" | "rolloutPercentage" | "targetingRules">>;

/** Returns the requested settings that differ from the current ones. */
export function changedSettings(flag: Flag, request: UpdateFlag): Settings {
  const { name, description, type } = request;
  return differing(flag, { name, description, type });
}

function changedState(state: FlagState, request: UpdateFlag): StateSettings {
  return differing(state, {
    enabled: request.enabled,
    rolloutPercentage: request.rollout_percentage,
    targetingRules: request.targeting_rules,
  });
}

/** Those of the wishes that are given and differ from what is, as JSON keeps them: without `-0`. */
function differing<T extends object>(
  current: T,
  wishes: { [K in keyof T]?: T[K] | undefined },
): Partial<T> {
  const kept = JSON.parse(JSON.stringify(wishes)) as Partial<T>;
  const entries = Object.entries(kept).filter(
    ([name, wish]) => !isDeepStrictEqual(current[name as keyof T], wish),
  );
  return Object.fromEntries(entries) as Partial<T>;
}

function eventNames(settings: Settings, state: StateSettings): EventName[] {
  const names: EventName[] = [];
  if (Object.keys(settings).length > 0) names.push("flag.updated");
  if (state.enabled !== undefined) names.push("flag.toggled");
  if (state.rolloutPercentage !== undefined || state.targetingRules !== undefined)
    names.push("flag_state.updated");
  return names;
}

function changesOf(flag: Flag, settings: Settings): NonNullable<FlagEvent["changes"]> {
  return Object.fromEntries(
    Object.entries(settings).map(([name, to]) => [
      name,
      { from: flag[name as keyof Settings], to },
    ]),
  );
}

function audited(
  before: { flag: Flag; state: FlagState },
  after: { flag: Flag; state: FlagState },
  occasion: Occasion,
): AuditEntry[] {
  const entries: AuditEntry[] = [];
  const { flag } = after;
  const at = flag.updatedAt;
  const settings = { before: auditedSettings(before.flag), after: auditedSettings(flag) };
  if (!isDeepStrictEqual(settings.before, settings.after))
    entries.push(auditEntry("settings", { flag, environmentId: null, ...settings, at }, occasion));
  if (after.state !== before.state) {
    const states = { before: auditedState(before.state), after: auditedState(after.state) };
    const { environmentId } = after.state;
    entries.push(auditEntry("state", { flag, environmentId, ...states, at }, occasion));
  }
  return entries;
}
