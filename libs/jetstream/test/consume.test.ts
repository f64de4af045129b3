import { deadLetterStream } from "@halyard/contracts";
import { eventually, startTestNats, type TestNats } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from "@jest/globals";
import type { ConsumptionOptions } from "../src/consume.ts";
import { publishDeadLetter } from "../src/dead-letter.ts";
import { ensureDeadLetters } from "../src/streams.ts";
import { createQueueBench, Outage, type Queue, type QueueBench } from "./queue-bench.ts";

/** Consumption of a work queue on a real server, by replicas that share one durable consumer. */
let nats: TestNats;
let bench: QueueBench;

beforeAll(async () => {
  nats = await startTestNats();
  bench = await createQueueBench(nats.url);
});
afterAll(async () => {
  await bench.close();
  await nats.stop();
});

/** Returns the reports to the broker about the messages of a queue, as they arrive. */
function watchReports({ stream, consumer }: Queue): readonly string[] {
  const reports: string[] = [];
  bench.connection.subscribe(`$JS.ACK.${stream}.${consumer}.>`, {
    callback: (_error, message) => void reports.push(message.string()),
  });
  return reports;
}

describe("given options without the verification of signatures", () => {
  it("does not compile, because every message would be accepted", () => {
    const options = {} as Omit<ConsumptionOptions, "verify">;
    // @ts-expect-error The verification is missing.
    const incomplete: ConsumptionOptions = options;
    expect(incomplete).toEqual({});
  });
});

describe("given messages that are handled", () => {
  it("removes each message after it was processed", async () => {
    const queue = await bench.openQueue();
    await queue.publish(["one", "two"]);
    const { handled, count } = await bench.consume(queue);
    await eventually(async () => (await queue.left()) === 0);
    expect(handled).toEqual(["one", "two"]);
    expect(await count("halyard_queue_messages_processed_total", { outcome: "done" })).toBe(2);
  });

  it("delivers each message to only one replica", async () => {
    const queue = await bench.openQueue();
    const bothAreBusy = Promise.withResolvers<"done">();
    const behavior = { handle: () => bothAreBusy.promise, concurrency: 4 };
    const one = await bench.consume(queue, behavior);
    const two = await bench.consume(queue, behavior);
    const names = Array.from({ length: 100 }, (_, index) => `message ${index}`);
    await queue.publish(names);
    await eventually(() => one.handled.length === 4 && two.handled.length === 4);
    bothAreBusy.resolve("done");
    await eventually(async () => (await queue.left()) === 0);
    expect([...one.handled, ...two.handled].sort()).toEqual(names.sort());
  });

  it("processes at most the configured number at a time, and leaves the rest to other replicas", async () => {
    const queue = await bench.openQueue();
    await queue.publish(["1", "2", "3", "4", "5"]);
    const release = Promise.withResolvers<"done">();
    const busy = await bench.consume(queue, { handle: () => release.promise, concurrency: 2 });
    await eventually(() => busy.handled.length === 2);
    const other = await bench.consume(queue);
    await eventually(() => other.handled.length === 3);
    expect(busy.handled).toHaveLength(2);
    expect(await queue.delivered()).toBe(5);
    release.resolve("done");
    await eventually(async () => (await queue.left()) === 0);
  });
});

describe("given a handler that takes longer than the time-out for acknowledgements", () => {
  // The time of the progress reports. All other timers are real, because the broker has no clock to replace.
  const ofIntervals = {
    doNotFake: [
      ...(["Date", "hrtime", "nextTick", "performance", "queueMicrotask"] as const),
      ...(["setImmediate", "clearImmediate", "setTimeout", "clearTimeout"] as const),
    ],
  };
  afterEach(() => void jest.useRealTimers());

  it("reports progress three times per time-out, so that the message stays with its replica", async () => {
    const queue = await bench.openQueue();
    const reports = watchReports(queue);
    await queue.publish(["long"]);
    jest.useFakeTimers(ofIntervals);
    const ackWaitMs = 60_000;
    const release = Promise.withResolvers<"done">();
    const { handled } = await bench.consume(queue, { ackWaitMs, handle: () => release.promise });
    await eventually(() => handled.length === 1);
    for (let count = 1; count <= 4; count += 1) {
      jest.advanceTimersByTime(ackWaitMs / 3);
      await eventually(() => reports.length === count);
    }
    release.resolve("done");
    await eventually(async () => (await queue.left()) === 0);
    await eventually(() => reports.length === 5);
    expect(reports).toEqual(["+WPI", "+WPI", "+WPI", "+WPI", "+ACK"]);
  });
});

describe("given a replica that crashes while it processes a message", () => {
  it("delivers its messages to another replica after the time-out for acknowledgements", async () => {
    const queue = await bench.openQueue();
    await queue.publish(["orphan"]);
    const bounds = { ackWaitMs: 1_000 };
    const dying = await bench.consume(queue, {
      ...bounds,
      handle: () => Promise.withResolvers<"done">().promise,
    });
    await eventually(() => dying.handled.length === 1);
    await dying.connection.close();
    const other = await bench.consume(queue, bounds);
    await eventually(() => other.handled.length === 1);
    expect(other.messages[0]).toMatchObject({
      subject: queue.subject,
      deliveries: 2,
      sequence: 1,
    });
    await eventually(async () => (await queue.left()) === 0);
  });
});

describe("given a message that cannot be processed yet", () => {
  it("delivers it again without a limit, after a delay, and does not keep it in the process", async () => {
    const queue = await bench.openQueue();
    const reports = watchReports(queue);
    await queue.publish(["early"]);
    const verdicts = Array.from({ length: 7 }, () => "later" as const);
    const { messages } = await bench.consume(queue, {
      handle: async () => verdicts.pop() ?? "done",
    });
    await eventually(async () => (await queue.left()) === 0);
    expect(messages.map(({ deliveries }) => deliveries)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    await eventually(() => reports.length === 8);
    const later = '-NAK {"delay":250000000}';
    expect(reports).toEqual([later, later, later, later, later, later, later, "+ACK"]);
    expect(new Set(messages.map(({ streamCreatedAt }) => streamCreatedAt)).size).toBe(1);
  });
});

describe("given a message whose handler fails", () => {
  it("waits for the end of outages without a limit, and does not count them as faults", async () => {
    const queue = await bench.openQueue();
    await queue.publish(["waiting"]);
    // Six outages and four faults. A fifth fault would exhaust the retries.
    const errors = ["outage", "outage", "outage", "fault", "fault", "fault", "fault"]
      .concat(["outage", "outage", "outage"])
      .map((kind) => (kind === "outage" ? new Outage() : new Error("fault")));
    const exhausted: unknown[] = [];
    const { handled, count } = await bench.consume(queue, {
      handle: async () => {
        const error = errors.shift();
        if (error !== undefined) throw error;
        return "done";
      },
      onRetriesExhausted: async (message) => void exhausted.push(message),
    });
    await eventually(async () => (await queue.left()) === 0);
    expect(handled).toHaveLength(11);
    expect(exhausted).toEqual([]);
    expect(await count("halyard_queue_retries_total", { cause: "outage" })).toBe(6);
    expect(await count("halyard_queue_retries_total", { cause: "fault" })).toBe(4);
  });

  it("dead-letters it after five faults, and processes later messages in the meantime", async () => {
    const queue = await bench.openQueue();
    const beforeMs = Date.now();
    await queue.publish(["broken", "behind it"]);
    const afterMs = Date.now();
    const exhausted: unknown[] = [];
    const { handled, count } = await bench.consume(queue, {
      concurrency: 2,
      handle: async ({ payload }) => {
        if (Buffer.from(payload).toString() !== "broken") return "done";
        throw new TypeError("no such flag");
      },
      onRetriesExhausted: async ({ sequence }, error) => {
        if (exhausted.push({ sequence, error }) === 1) throw new Outage();
      },
    });
    await eventually(async () => (await queue.left()) === 0);
    expect(handled.slice(0, 2).sort()).toEqual(["behind it", "broken"]);
    expect(handled.filter((name) => name === "broken")).toHaveLength(5);
    // The first call failed because of an outage.
    expect(exhausted).toEqual([
      { sequence: 1, error: new TypeError("no such flag") },
      { sequence: 1, error: new TypeError("no such flag") },
    ]);
    const [copy, ...more] = await bench.deadLetter(queue);
    expect(more).toEqual([]);
    expect(copy).toMatchObject({
      subject: `set_aside.${queue.subject}`,
      payload: "broken",
      headers: {
        "Halyard-Reason": "failed 5 times: TypeError",
        "Halyard-Subject": queue.subject,
        "Halyard-Stream": queue.stream,
        "Halyard-Sequence": "1",
      },
    });
    const arrivedMs = Date.parse(copy?.headers["Halyard-Time"] ?? "");
    expect(arrivedMs).toBeGreaterThanOrEqual(beforeMs);
    expect(arrivedMs).toBeLessThanOrEqual(afterMs);
    expect(await count("halyard_queue_messages_processed_total", { outcome: "set_aside" })).toBe(1);
  });

  it("dead-letters it even if its failure cannot be reported", async () => {
    const queue = await bench.openQueue();
    await queue.publish(["broken"]);
    await bench.consume(queue, {
      handle: () => Promise.reject(new Error("broken")),
      onRetriesExhausted: () => Promise.reject(new Error("broken too")),
    });
    await eventually(async () => (await queue.left()) === 0);
    expect(await bench.deadLetter(queue)).toHaveLength(1);
  });
});

describe("given a message that its handler rejects permanently", () => {
  it("dead-letters it immediately, with the handler's reason", async () => {
    const queue = await bench.openQueue();
    await queue.publish(["not JSON"]);
    const { handled } = await bench.consume(queue, {
      handle: async () => ({ deadLetter: "not a\r\ndue change" }),
    });
    await eventually(async () => (await queue.left()) === 0);
    expect(handled).toHaveLength(1);
    expect(await bench.deadLetter(queue)).toMatchObject([
      { payload: "not JSON", headers: { "Halyard-Reason": "not a due change" } },
    ]);
  });

  it("keeps it in the queue until the broker has stored the copy", async () => {
    const queue = await bench.openQueue();
    await ensureDeadLetters(bench.manager, 1);
    const limitCopies = (bytes: number) =>
      bench.manager.streams.update(deadLetterStream.name, { max_msg_size: bytes });
    await limitCopies(1);
    await queue.publish(["impossible"]);
    const { count } = await bench.consume(queue, {
      handle: async () => ({ deadLetter: "not a due change" }),
    });
    await eventually(async () => (await count("halyard_queue_retries_total", {})) > 0);
    expect(await queue.left()).toBe(1);
    await limitCopies(-1);
    await eventually(async () => (await queue.left()) === 0);
    expect(await bench.deadLetter(queue)).toMatchObject([{ payload: "impossible" }]);
  });

  it("stores one copy, even if it is copied again", async () => {
    const queue = await bench.openQueue();
    await queue.publish(["twice"]);
    const copyTwice = await bench.nextDelivery(queue);
    const client = bench.client;
    const options = { client, maxPayloadBytes: 1024 * 1024 };
    await publishDeadLetter(options, copyTwice, "first");
    await publishDeadLetter(options, copyTwice, "second");
    expect(await bench.deadLetter(queue)).toMatchObject([
      { headers: { "Halyard-Reason": "first" } },
    ]);
  });

  it("truncates a message that would not fit with its headers", async () => {
    const queue = await bench.openQueue();
    const largest = bench.connection.info?.max_payload ?? 0;
    await queue.publish(["x".repeat(largest)]);
    await bench.consume(queue, { handle: async () => ({ deadLetter: "too long" }) });
    await eventually(async () => (await queue.left()) === 0);
    const [copy] = await bench.deadLetter(queue);
    expect(copy?.headers["Halyard-Cut-From-Bytes"]).toBe(String(largest));
    expect(copy?.payload.length).toBeGreaterThan(largest / 2);
  });

  it("keeps it in the queue until the dead-letter stream exists again", async () => {
    const queue = await bench.openQueue();
    const { count } = await bench.consume(queue, {
      handle: async () => ({ deadLetter: "impossible" }),
    });
    await bench.manager.streams.delete(deadLetterStream.name);
    await queue.publish(["late"]);
    const failures = () => count("halyard_queue_retries_total", { cause: "outage" });
    await eventually(async () => (await failures()) > 0);
    expect(await queue.left()).toBe(1);
    await ensureDeadLetters(bench.manager, 1);
    await eventually(async () => (await queue.left()) === 0);
    expect(await bench.deadLetter(queue)).toHaveLength(1);
  });
});

describe("given a stream or a consumer that disappears", () => {
  it("creates the consumer again and continues", async () => {
    const queue = await bench.openQueue();
    const { handled } = await bench.consume(queue);
    await queue.publish(["before"]);
    await eventually(() => handled.length === 1);
    await eventually(async () => (await queue.left()) === 0);
    await bench.manager.consumers.delete(queue.stream, queue.consumer);
    await queue.publish(["after"]);
    await eventually(async () => (await queue.left()) === 0);
    expect(handled).toEqual(["before", "after"]);
  });

  it("does not process a message a second time if it is delivered again while it is in progress", async () => {
    const queue = await bench.openQueue();
    await queue.publish(["once"]);
    const release = Promise.withResolvers<"done">();
    const { handled, connection } = await bench.consume(queue, {
      handle: () => release.promise,
      concurrency: 2,
    });
    await eventually(() => handled.length === 1);
    await bench.manager.consumers.delete(queue.stream, queue.consumer);
    // The new consumer does not count earlier deliveries.
    await eventually(async () => (await queue.delivered()) === 1);
    await connection.flush();
    release.resolve("done");
    await eventually(async () => (await queue.left()) === 0);
    expect(handled).toEqual(["once"]);
  });

  it("continues with a stream that was created again, and distinguishes messages of the same sequence", async () => {
    const queue = await bench.openQueue();
    await queue.publish(["old"]);
    const releases = new Map(["old", "new"].map((name) => [name, Promise.withResolvers<"done">()]));
    const consumed = await bench.consume(queue, {
      concurrency: 2,
      handle: async ({ payload }) =>
        releases.get(Buffer.from(payload).toString())?.promise ?? "done",
    });
    await eventually(() => consumed.handled.length === 1);
    await bench.manager.streams.delete(queue.stream);
    await queue.create();
    // The stream is listed shortly before it accepts messages, so publishing is retried.
    await eventually(async () => {
      await queue.publish(["new"]);
      return true;
    });
    await eventually(() => consumed.handled.length === 2);
    releases.get("old")?.resolve("done");
    // When the flush returns, the broker has received any acknowledgement of the old message.
    await consumed.connection.flush();
    expect(await queue.left()).toBe(1);
    releases.get("new")?.resolve("done");
    await eventually(async () => (await queue.left()) === 0);
    expect(consumed.handled).toEqual(["old", "new"]);
  });
});

describe("given a replica that stops", () => {
  it("completes messages in progress and releases those that wait for a retry", async () => {
    const queue = await bench.openQueue();
    await queue.publish(["finishes", "waits"]);
    // With the free slot, a replica that still requests messages would receive the released one again.
    const bounds = { ackWaitMs: 60_000, concurrency: 3 };
    const finishing = Promise.withResolvers<"done">();
    const stopping = await bench.consume(queue, {
      ...bounds,
      handle: async ({ payload }) => {
        if (Buffer.from(payload).toString() === "waits") throw new Outage();
        return finishing.promise;
      },
    });
    await eventually(() => stopping.handled.filter((name) => name === "waits").length > 2);
    const other = await bench.consume(queue, bounds);
    const stopped = stopping.consumption.stop();
    await eventually(() => other.handled.length === 1);
    finishing.resolve("done");
    await stopped;
    await eventually(async () => (await queue.left()) === 0);
    expect(other.handled).toEqual(["waits"]);
    expect(stopping.consumption.isRunning()).toBe(false);
  });

  it("does not wait for ever for a handler that hangs", async () => {
    const queue = await bench.openQueue();
    await queue.publish(["hangs"]);
    const bounds = { ackWaitMs: 60_000 };
    const hanging = await bench.consume(queue, {
      ...bounds,
      handle: () => Promise.withResolvers<"done">().promise,
    });
    await eventually(() => hanging.handled.length === 1);
    const other = await bench.consume(queue, bounds);
    await hanging.consumption.stop();
    await eventually(() => other.handled.length === 1);
  });
});
