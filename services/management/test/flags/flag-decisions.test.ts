import type { FlagSettings, UpdateFlagState } from "@halyard/contracts";
import { isProblem } from "@halyard/http";
import { describe, expect, it } from "@jest/globals";
import { decideChange, decideDelete } from "../../src/flags/decide-flag.ts";
import {
  type Content,
  changedContent,
  type Flag,
  initialContent,
  type StoredState,
} from "../../src/flags/flag.ts";
import { checkRules, type WithCheckedRules } from "../../src/flags/targeting-rules.ts";
import type { OutboxMessage } from "../../src/outbox/outbox-message.ts";
import { booleanFlag } from "./boolean-flag.ts";

const createdAt = new Date("2026-11-20T10:00:00.000Z");
const environment = { id: "production", name: "production", protection: null, protectedAt: null };
const created: Flag = {
  id: "flag",
  organizationId: "organization",
  projectId: "project",
  key: "checkout",
  name: "Checkout",
  description: "",
  type: "release",
  ...booleanFlag,
  tags: [],
  owner: null,
  archivedAt: null,
  version: 1,
  lastEventAt: createdAt,
  createdAt,
  updatedAt: createdAt,
};
const off: StoredState = {
  flagId: "flag",
  environmentId: "production",
  content: initialContent,
  version: 1,
  updatedAt: createdAt,
};

let ids = 0;
const contextAt = (now: Date) =>
  ({
    actor: { id: "ada", email: "ada@example.com" },
    apiKeyId: null,
    via: "operator",
    cause: "manual",
    now,
    newId: () => `id-${++ids}`,
  }) as const;

function contentOf(
  content: Content,
  request: WithCheckedRules<FlagSettings & UpdateFlagState>,
): Content {
  const { newId } = contextAt(createdAt);
  const changed = changedContent(created, content, request, { newId });
  if (isProblem(changed)) throw new Error(changed.message);
  return changed;
}

const timestampsOf = (messages: readonly OutboxMessage[]) =>
  messages.flatMap((message) => (message.stream === "events" ? [message.event.timestamp] : []));

describe("the timestamps of a flag's events", () => {
  /** Each change affects the settings, the enabled state and the rollout, and so causes three events. */
  const changes: WithCheckedRules<FlagSettings & UpdateFlagState>[] = [1, 2, 3].map((step) => ({
    name: `Checkout ${step}`,
    enabled: step % 2 === 1,
    rollout_percentage: step,
  }));

  it.each([
    ["the clock stands still", () => createdAt],
    ["the clock moves backwards", (step: number) => new Date(createdAt.getTime() - step * 1_000)],
    ["one millisecond passes between two changes", (step: number) => new Date(+createdAt + step)],
  ])("increase with every event while %s", (_name, nowAt) => {
    const timestamps = [createdAt.toISOString()];
    let flag = created;
    let state = off;
    for (const [step, change] of changes.entries()) {
      const requested = { ...change, content: contentOf(state.content, change) };
      const decision = decideChange(
        { flag, state, environment },
        requested,
        contextAt(nowAt(step)),
      );
      if (decision === "unchanged") throw new Error("Every change differs from the last state.");
      timestamps.push(...timestampsOf(decision.messages));
      flag = decision.flag;
      state = decision.state;
      expect(flag.lastEventAt.toISOString()).toBe(timestamps.at(-1));
    }
    const last = { flag, state, environment, states: [state] };
    const deleted = decideDelete(last, contextAt(nowAt(changes.length)));
    timestamps.push(...timestampsOf(deleted.messages));
    expect(timestamps).toHaveLength(1 + 3 * changes.length + 1);
    expect(timestamps).toEqual([...new Set(timestamps)].sort());
  });
});

describe("a change of rules", () => {
  const targeting_rules = [{ conditions: [] }];
  const decide = (request: WithCheckedRules<FlagSettings & UpdateFlagState>) => {
    const content = contentOf(off.content, request);
    return decideChange(
      { flag: created, state: off, environment },
      { content },
      contextAt(createdAt),
    );
  };

  it("requires checked rules, which only the check returns", () => {
    // @ts-expect-error Unchecked rules are a compile error.
    decide({ targeting_rules });
    const checked = checkRules({ targeting_rules });
    if (isProblem(checked)) throw new Error(checked.message);
    expect(decide(checked)).toMatchObject({ state: { content: { targeting_rules } } });
  });
});

describe("the deletion of a flag", () => {
  it("leaves tombstones with the next version, because readers ignore an entry of the same version", () => {
    const flag = { ...created, version: 4 };
    const state = { ...off, version: 2 };
    const states = [state, { ...off, environmentId: "staging", version: 4 }];
    const { messages } = decideDelete({ flag, state, environment, states }, contextAt(createdAt));
    const tombstones = messages.filter(({ stream }) => stream === "snapshot");
    const tombstone = { value: { deleted: true, version: 5 } };
    expect(tombstones).toMatchObject([tombstone, tombstone]);
  });
});
