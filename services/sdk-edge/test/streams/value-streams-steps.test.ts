import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { DirectoryKey } from "@halyard/api-keys";
import { createContext } from "@halyard/evaluation";
import { maxUnsentBytes } from "@halyard/http";
import { beforeEach, describe, expect, it } from "@jest/globals";
import { createConfigurationTags } from "../../src/answers/configuration-tags.ts";
import { createEnvironmentViews } from "../../src/answers/environment-views.ts";
import { sendSliceMs } from "../../src/answers/fair-scheduler.ts";
import { asBooleans } from "../../src/answers/value-form.ts";
import { buildSnapshot, changedBetween } from "../../src/snapshot/snapshot.ts";
import { createStreamRegistry, type StreamRegistry } from "../../src/streams/stream-registry.ts";
import { createValueStreams } from "../../src/streams/value-streams.ts";
import { flagEntry, id } from "../builders.ts";

/**
 * A stream takes long to evaluate on the test's clock: each condition takes a slice. There are enough expressions for
 * the rules to count as costly, but the text is short, so that the test is fast.
 */
const costlyFlags = 12;
const context = createContext(new Map([["text", "x"]]));
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
let views: ReturnType<typeof createEnvironmentViews>;
let version: number;
let clockMs: number;
let openStreams: StreamRegistry;
let reader: Reader;

beforeEach(() => {
  views = createEnvironmentViews();
  version = 0;
  clockMs = 0;
  become({ changing: false });
  reader = createReader();
  openStreams = createStreamRegistry();
  const streams = createValueStreams({
    openStreams,
    views,
    tagOf: createConfigurationTags().of,
    now: () => 0,
    random: () => 0,
    monotonicMs,
  });
  const view = views.of(id("env"));
  const values = view.valuesFor(context);
  streams.open(reader.response, {
    ...{ key, context, view, form: asBooleans, values },
    hasLargeContext: false,
    lastEventId: undefined,
  });
  reader.forget();
});

describe("given a stream that takes many slices to evaluate", () => {
  it("receives one event when the evaluation is finished", async () => {
    notify({ changing: true });
    await turns(costlyFlags - 1);
    expect(reader.received()).toEqual([]);
    await turnsUntilIdle();
    expect(reader.received()).toEqual([{ flags: { changing: true } }]);
    expect(reader.lastId()).toBe(currentTag());
  });

  it("receives a change that arrives meanwhile afterwards", async () => {
    notify({ changing: true });
    await turns(3);
    notify({ changing: false });
    notify({ changing: false, added: true });
    await turnsUntilIdle();
    expect(reader.received()).toEqual([
      { flags: { changing: true } },
      { flags: { added: true, changing: false } },
    ]);
    expect(reader.lastId()).toBe(currentTag());
  });

  it("is not evaluated further after it has closed", async () => {
    notify({ changing: true });
    await turns(3);
    reader.response.emit("close");
    const usedMs = clockMs;
    await turns(costlyFlags);
    expect(reader.received()).toEqual([]);
    expect(clockMs - usedMs).toBeLessThan(3 * sendSliceMs);
  });

  it("receives nothing while its client is behind, and all values after it has caught up", async () => {
    notify({ changing: true });
    await turns(3);
    reader.leaveUnread(maxUnsentBytes + 1);
    await turnsUntilIdle();
    expect(reader.received()).toEqual([]);
    notify({ changing: true, added: true });
    await turnsUntilIdle();

    reader.readAll();
    await turns(costlyFlags);
    expect(reader.received()).toEqual([]);
    await turnsUntilIdle();
    expect(reader.received()).toEqual([
      { flags: expect.objectContaining({ added: true, changing: true, "costly-0": false }) },
    ]);
    expect(reader.lastId()).toBe(currentTag());
  });

  it("receives all values once after it has caught up, and deltas again after that", async () => {
    reader.leaveUnread(maxUnsentBytes + 1);
    notify({ changing: true });
    await turnsUntilIdle();
    reader.readAll();
    await turns(3);
    notify({ changing: false });
    await turnsUntilIdle();
    expect(reader.received()).toEqual([
      { flags: expect.objectContaining({ changing: true, "costly-0": false }) },
      { flags: { changing: false } },
    ]);
  });
});

/** A clock that advances by half a slice with each call, so that a slice has time for one step. */
const monotonicMs = () => {
  clockMs += sendSliceMs / 2;
  return clockMs;
};

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await nextTurn();
}

async function turnsUntilIdle(): Promise<void> {
  for (let usedMs = -1; usedMs !== clockMs; ) {
    usedMs = clockMs;
    await turns(2);
  }
}

/** Sets the environment's flags, in addition to the costly ones. */
function become(values: Record<string, boolean>): void {
  version += 1;
  const costly = Array.from({ length: costlyFlags }, (_, number) =>
    flagEntry({
      flag_id: id("flag", number),
      key: `costly-${number}`,
      enabled: true,
      targeting_rules: [
        { conditions: [{ attribute: "text", operator: "matches_regex", value: `^${number}$` }] },
      ],
    }),
  );
  const others = Object.entries(values).map(([key, enabled], number) =>
    flagEntry({ flag_id: id("flag", 100 + number), key, enabled, version }),
  );
  const snapshot = buildSnapshot(id("epoch"), [...costly, ...others]);
  views.of(id("env"));
  const changed = changedBetween(undefined, snapshot);
  views.update({ snapshot, changed, isReplacement: true, taken: [] });
}

function notify(values: Record<string, boolean>): void {
  become(values);
  openStreams.notify(id("env"));
}

const currentTag = () => views.of(id("env")).valuesFor(context).etag;

type Reader = ReturnType<typeof createReader>;

/** Creates a response, and returns it with the events that are written to it. */
function createReader() {
  const written: string[] = [];
  const response = Object.assign(new EventEmitter(), {
    socket: null,
    writableLength: 0,
    writableEnded: false,
    write: (event: Buffer) => written.push(event.toString()),
  });
  return {
    response: response as unknown as ServerResponse,
    received: () => written.map((event) => JSON.parse(/^data: (.*)$/m.exec(event)?.[1] ?? "")),
    /** Discards the events written so far. */
    forget: () => written.splice(0),
    lastId: () => /^id: (.*)$/m.exec(written.at(-1) ?? "")?.[1],
    leaveUnread(bytes: number) {
      response.writableLength = bytes;
    },
    readAll() {
      response.writableLength = 0;
      response.emit("drain");
    },
  };
}
