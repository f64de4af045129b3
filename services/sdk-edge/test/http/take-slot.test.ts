import { EventEmitter } from "node:events";
import type { Problem } from "@halyard/http";
import { beforeEach, describe, expect, it } from "@jest/globals";
import type { StreamSlots } from "../../src/admission/stream-slots.ts";
import type { SdkExchange } from "../../src/http/hot-path.ts";
import { takeSlot } from "../../src/http/take-slot.ts";

/** A stream whose values are evaluated asynchronously. The tests call `open` when the values are ready. */
let response: EventEmitter & { destroyed: boolean };
let taken: number;
let released: number;
let isDraining: boolean;
let open: ((begin: () => void) => void) | undefined;
let answer: Problem | "opened" | undefined;

beforeEach(() => {
  response = Object.assign(new EventEmitter(), { destroyed: false });
  taken = 0;
  released = 0;
  isDraining = false;
  open = undefined;
  answer = undefined;
});

describe.each([
  { granted: "slots of the plan", isLimited: true },
  { granted: "no limits", isLimited: false },
])("given $granted, and a stream whose values are not ready", ({ isLimited }) => {
  beforeEach(() => ask(isLimited));

  it("opens when they are ready", () => {
    opens();
    expect(answer).toBe("opened");
  });

  it("does not open if the edge starts to close its streams meanwhile", () => {
    isDraining = true;
    opens();
    expect(codeOf(answer)).toBe("SERVER_002");
  });
});

describe("given slots of the plan", () => {
  it("releases the slot once when the response ends", () => {
    ask(true);
    opens();
    expect(released).toBe(0);
    response.emit("close");
    expect(released).toBe(1);
  });

  it("takes no slot if the client has disconnected already", () => {
    response.destroyed = true;
    ask(true);
    expect(taken).toBe(0);
    expect(answer).toBeUndefined();
  });

  it("does not open, and releases the slot once, if the client disconnects before the values are ready", () => {
    ask(true);
    isDraining = true;
    response.destroyed = true;
    response.emit("close");
    opens();
    expect([taken, released]).toEqual([1, 1]);
    expect(answer).toBeUndefined();
  });
});

function ask(isLimited: boolean): void {
  const slots: StreamSlots = {
    take() {
      taken += 1;
      return undefined;
    },
    release() {
      released += 1;
    },
    knowsOthers: () => true,
  };
  const exchange = {
    response,
    key: { organizationId: "ropes" },
    reject: (problem: Problem) => {
      answer = problem;
    },
  } as unknown as SdkExchange;
  const parts = { slots: isLimited ? slots : undefined, isDraining: () => isDraining };
  takeSlot(exchange, parts, (whenReady) => {
    open = whenReady;
  });
}

function opens(): void {
  open?.(() => {
    answer = "opened";
  });
}

function codeOf(granted: typeof answer): string | undefined {
  return typeof granted === "object" ? granted.rejected : undefined;
}
