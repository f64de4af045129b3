import { fileURLToPath } from "node:url";
import { migrate } from "@halyard/postgres";
import { runCommand } from "@halyard/service";
import { readOwnerUrl } from "./config.ts";

/** Migrates the schema `usage`, then exits. */
await runCommand(async () => {
  const applied = await migrate({
    ownerUrl: readOwnerUrl(),
    schema: "usage",
    directory: fileURLToPath(new URL("../migrations", import.meta.url)),
  });
  process.stdout.write(`usage-metering: ${applied.join(", ") || "nothing to do"}\n`);
});
