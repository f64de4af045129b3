import { fileURLToPath } from "node:url";
import { migrate } from "@halyard/postgres";
import { runCommand } from "@halyard/service";
import { readOwnerUrl } from "./config.ts";

/** Applies the pending migrations of the schema `webhooks`, then exits. */
await runCommand(async () => {
  const applied = await migrate({
    ownerUrl: readOwnerUrl(),
    schema: "webhooks",
    directory: fileURLToPath(new URL("../migrations", import.meta.url)),
  });
  process.stdout.write(`webhook-dispatcher: ${applied.join(", ") || "nothing to do"}\n`);
});
