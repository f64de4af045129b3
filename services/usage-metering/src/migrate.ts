import { runMigrations } from "@halyard/postgres";
import { runCommand } from "@halyard/service";
import { readOwnerUrl } from "./config.ts";

await runCommand(() =>
  runMigrations({
    schema: "usage",
    service: "usage-metering",
    at: import.meta.url,
    readOwnerUrl,
  }),
);
