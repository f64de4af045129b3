import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { DirectoryKey } from "@halyard/api-keys";
import { createContext, emptyContext } from "@halyard/evaluation";
import { describe, expect, it } from "@jest/globals";
import { createConfigurationTags } from "../../src/answers/configuration-tags.ts";
import { createEnvironmentViews } from "../../src/answers/environment-views.ts";
import { asBooleans } from "../../src/answers/value-form.ts";
import { buildSnapshot, changedBetween } from "../../src/snapshot/snapshot.ts";
import { createStreamRegistry } from "../../src/streams/stream-registry.ts";
import { createValueStreams } from "../../src/streams/value-streams.ts";
import { flagEntry, id } from "../builders.ts";

const key: DirectoryKey = {
  id: "key",
  kind: "client",
  organizationId: id("org"),
  projectId: id("project"),
  environmentId: id("env"),
  userId: id("user"),
  environmentOnly: false,
  scope: "write",
  expiresAtMs: undefined,
};

describe.each([
  { contextName: "without a context", context: emptyContext },
  { contextName: "with a context", context: createContext(new Map([["plan", "pro"]])) },
])(
  "given a stream $contextName that was evaluated before a change and opens after it",
  ({ context }) => {
    it("sends the evaluated values and then the change", async () => {
      const { openStreams, streams, become, evaluate, sent, current } = given();
      become({ alpha: false, beta: true });
      const evaluated = evaluate(context);
      become({ alpha: true, beta: true });
      openStreams.notify(id("env"));
      streams.open(sent.response, { key, context, ...evaluated });
      await nextTurn();
      expect(sent.flags()).toEqual([
        { flags: { alpha: false, beta: true } },
        { flags: { alpha: true } },
      ]);
      expect(sent.ids().at(-1)).toBe(current().tagFor(context));
    });

    it("sends the values once if nothing changed", async () => {
      const { streams, become, evaluate, sent } = given();
      become({ alpha: true });
      streams.open(sent.response, { key, context, ...evaluate(context) });
      await nextTurn();
      expect(sent.flags()).toEqual([{ flags: { alpha: true } }]);
    });
  },
);

describe.each([
  { contextName: "without a context", context: emptyContext },
  { contextName: "with a context", context: createContext(new Map([["plan", "pro"]])) },
])("given a stream $contextName whose client has disconnected", ({ context }) => {
  it("is not kept, and receives no change", async () => {
    const { openStreams, streams, become, evaluate, sent } = given();
    become({ alpha: false });
    streams.open(sent.response, { key, context, ...evaluate(context) });
    sent.response.emit("close");
    become({ alpha: true });
    openStreams.notify(id("env"));
    await nextTurn();
    expect(sent.flags()).toEqual([{ flags: { alpha: false } }]);
  });
});

function given() {
  const views = createEnvironmentViews();
  const current = () => views.of(id("env"));
  const openStreams = createStreamRegistry();
  const streams = createValueStreams({
    openStreams,
    views,
    tagOf: createConfigurationTags().of,
    now: () => 0,
    random: () => 0.5,
    monotonicMs: () => 0,
  });
  let version = 0;
  return {
    openStreams,
    streams,
    current,
    sent: createSent(),
    /** Sets the flags of the environment. */
    become(values: Record<string, boolean>) {
      version += 1;
      const entries = Object.entries(values).map(([flagKey, enabled], number) =>
        flagEntry({ flag_id: id("flag", number), key: flagKey, enabled, version }),
      );
      const snapshot = buildSnapshot(id("epoch"), entries);
      const changed = changedBetween(undefined, snapshot);
      views.of(id("env"));
      views.update({ snapshot, changed, isReplacement: true, taken: [] });
    },
    evaluate(context: ReturnType<typeof createContext>) {
      const view = current();
      const values = view.valuesFor(context);
      return { view, form: asBooleans, values, hasLargeContext: false, lastEventId: undefined };
    },
  };
}

/** Collects the events that are written to a response. */
function createSent() {
  let text = "";
  const response = Object.assign(new EventEmitter(), {
    socket: null,
    writableLength: 0,
    writableEnded: false,
    write: (chunk: Buffer) => {
      text += chunk.toString();
    },
  });
  const fields = (name: string) =>
    [...text.matchAll(new RegExp(`^${name}: (.*)$`, "gm"))].map(([, value]) => value ?? "");
  return {
    response: response as unknown as ServerResponse,
    flags: () =>
      fields("data")
        .map((data) => JSON.parse(data))
        .filter((data) => "flags" in data),
    ids: () => fields("id"),
  };
}
