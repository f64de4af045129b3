import { createMessageSigner, createMessageVerifier } from "@halyard/jetstream";
import { openService } from "@halyard/server-key-service";
import { startOrExit } from "@halyard/service";
import { v7 as uuidv7 } from "uuid";
import { createSchedulerApp } from "./app.ts";
import { startCleanUp } from "./clean-up.ts";
import { readConfig } from "./config.ts";
import { createFlagDirectory } from "./directory/flag-directory.ts";
import { createScheduleChanges } from "./schedules/schedule-changes.ts";
import { startWorkers } from "./workers.ts";

await startOrExit(async () => {
  const config = readConfig();
  const service = await openService("scheduler", config);
  const { hasEnded } = service.keys;
  const flags = createFlagDirectory({ now: Date.now, hasEnded });
  const workers = startWorkers({
    ...service,
    flags,
    sign: createMessageSigner(config.SCHEDULER_SIGNING_PRIVATE_KEY),
    verify: createMessageVerifier({
      publicKeys: { management: config.SIGNING_PUBLIC_KEYS },
      logger: service.logger,
    }),
  });
  const app = createSchedulerApp({
    ...service,
    ...service.appOptions(workers),
    changes: createScheduleChanges({
      sql: service.sql,
      newId: (at) => uuidv7({ msecs: at.getTime() }),
      monotonicMs: () => performance.now(),
      onSet: workers.onSet,
    }),
    findFlag: flags.find,
    findProtected: service.places.findProtected,
    hasEnded,
  });
  await service.run({ app, workers, close: [startCleanUp(service).stop] });
});
