import { runMigrations } from "@halyard/postgres";
import { runCommand } from "@halyard/service";
import { readOwnerUrl } from "./config.ts";

await runCommand(() =>
  runMigrations({
    schema: "management",
    service: "management",
    at: import.meta.url,
    readOwnerUrl,
  }),
);
