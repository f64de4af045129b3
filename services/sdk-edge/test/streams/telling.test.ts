import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createContext } from "@halyard/evaluation";
import { beforeEach, describe, expect, it } from "@jest/globals";
import { createEnvironmentViews } from "../../src/environment/environment-views.ts";
import { buildSnapshot, changedBetween } from "../../src/snapshot/reduce.ts";
import { sliceMs } from "../../src/streams/slices.ts";
import { type FlagsStream, maxUnsentBytes } from "../../src/streams/stream.ts";
import { createTelling, type Telling } from "../../src/streams/telling.ts";
import { flagEntry, id } from "../builders.ts";

/**
 * A stream that takes long to evaluate, by a clock of the test: each condition takes a slice. There are
 * enough expressions for rules to be costly, each over a text that it soon has been through.
 */
const costlyFlags = 12;
let views: ReturnType<typeof createEnvironmentViews>;
let version: number;
let clockMs: number;
let telling: Telling;
let reader: Reader;
let stream: FlagsStream;

beforeEach(() => {
  views = createEnvironmentViews();
  version = 0;
  clockMs = 0;
  become({ changing: false });
  reader = createReader();
  stream = openStream();
  telling = createTelling({ views, counts: { flags: 0 }, now: () => 0, elapsed });
});

describe("given a stream that takes many slices to evaluate", () => {
  it("is told when it is evaluated, once", async () => {
    announce({ changing: true });
    await turns(costlyFlags - 1);
    expect(reader.heard()).toEqual([]);
    await turnsUntilIdle();
    expect(reader.heard()).toEqual([{ flags: { changing: true } }]);
    expect(reader.lastId()).toBe(presentTag());
  });

  it("is told afterwards of a change that comes meanwhile", async () => {
    announce({ changing: true });
    await turns(3);
    announce({ changing: false });
    announce({ changing: false, added: true });
    await turnsUntilIdle();
    expect(reader.heard()).toEqual([
      { flags: { changing: true } },
      { flags: { added: true, changing: false } },
    ]);
    expect(reader.lastId()).toBe(presentTag());
  });

  it("is evaluated no further when it has closed", async () => {
    announce({ changing: true });
    await turns(3);
    telling.forget(stream);
    const usedMs = clockMs;
    await turns(costlyFlags);
    expect(reader.heard()).toEqual([]);
    expect(clockMs - usedMs).toBeLessThan(3 * sliceMs);
  });

  it("is told nothing when its reader has fallen behind meanwhile, until that is put right", async () => {
    announce({ changing: true });
    await turns(3);
    reader.leaveUnread(maxUnsentBytes + 1);
    await turnsUntilIdle();
    expect(reader.heard()).toEqual([]);
    announce({ changing: true, added: true });
    await turnsUntilIdle();

    reader.readAll();
    await turns(costlyFlags);
    expect(reader.heard()).toEqual([]);
    await turnsUntilIdle();
    expect(reader.heard()).toEqual([
      { flags: expect.objectContaining({ added: true, changing: true, "costly-0": false }) },
    ]);
    expect(reader.lastId()).toBe(presentTag());
  });

  it("hears all values once more when it is put right, and differences again after that", async () => {
    reader.leaveUnread(maxUnsentBytes + 1);
    announce({ changing: true });
    await turnsUntilIdle();
    reader.readAll();
    await turns(3);
    announce({ changing: false });
    await turnsUntilIdle();
    expect(reader.heard()).toEqual([
      { flags: expect.objectContaining({ changing: true, "costly-0": false }) },
      { flags: { changing: false } },
    ]);
  });
});

/** A turn of the loop gives time for one step. */
const elapsed = () => {
  clockMs += sliceMs;
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

/** The environment's flags from now on, besides those that take long. */
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
  views.update({ snapshot, changed, whole: true, taken: [] });
}

function announce(values: Record<string, boolean>): void {
  become(values);
  telling.tell(id("env"), [stream]);
}

const presentTag = () => views.of(id("env")).valuesFor(stream.context).etag;

function openStream(): FlagsStream {
  return {
    kind: "flags",
    response: reader.response,
    keyId: "key",
    organizationId: id("org"),
    environmentId: id("env"),
    slot: 0,
    behind: undefined,
    cause: "client",
    context: createContext(new Map([["text", "x"]])),
    hasLargeContext: false,
    heard: views.of(id("env")),
    hasMissed: false,
  };
}

type Reader = ReturnType<typeof createReader>;

/** Who listens, at the other end of a response. */
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
    heard: () => written.map((event) => JSON.parse(/^data: (.*)$/m.exec(event)?.[1] ?? "")),
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
