import { fileURLToPath } from "node:url";
import { migrate } from "@halyard/postgres";
import { startOrExit } from "@halyard/service";
import { readMigrateConfig } from "./config.ts";

/** Brings the schema `usage` up to date, then ends. */
const directory = fileURLToPath(new URL("../migrations", import.meta.url));

await startOrExit(async () => {
  const { POSTGRES_OWNER_URL } = readMigrateConfig();
  const applied = await migrate({
    ownerUrl: POSTGRES_OWNER_URL,
    schema: "usage",
    directory,
    log: () => undefined,
  });
  const names = applied.length === 0 ? "nothing to do" : applied.join(", ");
  process.stdout.write(`usage-metering: ${names}\n`);
});
