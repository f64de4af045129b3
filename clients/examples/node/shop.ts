import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createClient } from "@halyard/server-sdk";
import { port, readDemo } from "../src/config.ts";
import { provideFlag } from "../src/demo-flag.ts";

/** A shop that decides in its own process which checkout a user gets. */
const demo = readDemo();
await provideFlag(demo);

const flags = createClient<"new-checkout">({ baseUrl: demo.baseUrl, serverKey: demo.readerKey });
flags.on("change", () => console.log(`Flags from ${flags.status.source}:`, flags.allFlags()));
await flags.ready({ timeoutMs: 5_000 });

const server = createServer((request, response) => {
  const user = new URL(request.url ?? "/", "http://localhost").searchParams.get("user") ?? "guest";
  const isNew = flags.isEnabled("new-checkout", { id: user });
  response.end(`${user} gets the ${isNew ? "new" : "old"} checkout\n`);
});
server.listen(port, () => {
  const { port: opened } = server.address() as AddressInfo;
  console.log(`Open http://localhost:${opened}/?user=anna`);
  console.log("Then run in another terminal: npm run toggle --workspace clients/examples");
});
