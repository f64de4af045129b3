import { monitorEventLoopDelay } from "node:perf_hooks";
import { createKeySignatures } from "@halyard/api-keys";
import { connectNats } from "@halyard/jetstream";
import { createPeopleDirectory, followPeople } from "@halyard/people";
import { createMetrics } from "@halyard/service";
import { pino } from "pino";
import { answerParent } from "../processes/answer-parent.ts";
import { benchSigner } from "../system/signing.ts";
import { nowMs } from "../time.ts";

/** A process with only the directory of people, read as by every service. */
const logger = pino({ level: "silent" });
const directory = createPeopleDirectory();
const metrics = createMetrics({ service: "reader" });
const signatures = createKeySignatures({ publicKeys: [benchSigner.publicKey], metrics, logger });
const delays = monitorEventLoopDelay({ resolution: 1 });

const api = {
  /** Reads everything, as after a start or a reconnect. The directory keeps its state between reads. */
  async read({ natsUrl }: { natsUrl: string }) {
    const connection = await connectNats({ nats: { url: natsUrl }, name: "reader", logger });
    const current = Promise.withResolvers<void>();
    delays.reset();
    delays.enable();
    const [beganMs, cpuBefore] = [nowMs(), process.cpuUsage()];
    const onCurrent = current.resolve;
    const followed = followPeople({ connection, directory, signatures, onCurrent, logger });
    await current.promise;
    const { user, system } = process.cpuUsage(cpuBefore);
    const tookMs = nowMs() - beganMs;
    delays.disable();
    await followed.stop();
    await connection.close();
    return { tookMs, cpuMs: (user + system) / 1e3, longestBlockMs: delays.max / 1e6 };
  },
  /** Returns the bytes of all live objects. */
  heapBytes(): number {
    globalThis.gc?.();
    return process.memoryUsage().heapUsed;
  },
};
export type PeopleReader = typeof api;
answerParent(api);
