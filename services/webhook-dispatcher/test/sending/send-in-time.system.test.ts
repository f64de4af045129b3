import { afterEach, describe, expect, it } from "@jest/globals";
import { createSend } from "../../src/sending/send.ts";
import { answerOk, createClosing, startRawTarget } from "./raw-target.ts";

/** The real time limit of an attempt. Both targets are tested concurrently, for half a minute. */
const { closing, closeAll } = createClosing();
afterEach(closeAll);

async function sendToTargetWithDelay(ms: number) {
  const target = closing(
    await startRawTarget({
      onRequest: (socket) => void setTimeout(() => answerOk(socket), ms).unref(),
    }),
  );
  const sender = closing(createSend({ rules: { httpsOnly: false, allowPrivate: true } }));
  return sender.send({ url: `http://127.0.0.1:${target.port}/`, headers: {}, body: "{}" });
}

describe("a target", () => {
  it("may respond after 29 s, but not after 31 s", async () => {
    const [inTime, tooLate] = await Promise.all([29_000, 31_000].map(sendToTargetWithDelay));
    expect(inTime).toMatchObject({ kind: "answered", status: 200 });
    expect(tooLate).toMatchObject({ kind: "failed", error: "time-out after 30 s", timedOut: true });
  });
});
