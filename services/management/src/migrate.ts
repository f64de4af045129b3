import { fileURLToPath } from "node:url";
import { migrate } from "@halyard/postgres";
import { runCommand } from "@halyard/service";
import { readOwnerUrl } from "./config.ts";

/** Migrates the schema `management` to the current version, then exits. */
await runCommand(async () => {
  const applied = await migrate({
    ownerUrl: readOwnerUrl(),
    schema: "management",
    directory: fileURLToPath(new URL("../migrations", import.meta.url)),
  });
  process.stdout.write(`management: ${applied.join(", ") || "nothing to do"}\n`);
});
