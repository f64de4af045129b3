import { fileURLToPath } from "node:url";
import { migrate } from "@halyard/postgres";
import { runCommand } from "@halyard/service";
import { readOwnerUrl } from "./config.ts";

/** Migrates the schema `scheduler` to the current version. */
await runCommand(async () => {
  const applied = await migrate({
    ownerUrl: readOwnerUrl(),
    schema: "scheduler",
    directory: fileURLToPath(new URL("../migrations", import.meta.url)),
  });
  process.stdout.write(`scheduler: ${applied.join(", ") || "nothing to do"}\n`);
});
