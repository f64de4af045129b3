import { afterEach, describe, expect, it } from "@jest/globals";
import { createSend } from "../../src/sending/send.ts";
import { answerOk, createClosing, startRawTarget } from "./raw-target.ts";

/** How long a target really has, by the clock on the wall: both wait side by side, for half a minute. */
const { closing, closeAll } = createClosing();
afterEach(closeAll);

async function sendToOneThatAnswersAfter(ms: number) {
  const target = closing(
    await startRawTarget({
      onRequest: (socket) => void setTimeout(() => answerOk(socket), ms).unref(),
    }),
  );
  const sender = closing(createSend({ rules: { httpsOnly: false, allowPrivate: true } }));
  return sender.send({ url: `http://127.0.0.1:${target.port}/`, headers: {}, body: "{}" });
}

describe("a target", () => {
  it("that answers after 29 s has answered, and one that would after 31 s has not", async () => {
    const [inTime, tooLate] = await Promise.all([29_000, 31_000].map(sendToOneThatAnswersAfter));
    expect(inTime).toMatchObject({ kind: "answered", status: 200 });
    expect(tooLate).toMatchObject({ kind: "failed", error: "time-out after 30 s", timedOut: true });
  });
});
