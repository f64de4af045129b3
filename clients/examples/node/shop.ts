import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createClient, defineFlags } from "@halyard/server-sdk";
import { port, readDemo } from "../src/config.ts";
import { provideFlags } from "../src/demo-flags.ts";

/** A shop that chooses the checkout of a user and its color in its own process. */
const demo = readDemo();
await provideFlags(demo);

const types = defineFlags({ "new-checkout": "boolean", "checkout-color": "string" });
const flags = createClient<typeof types>({ baseUrl: demo.baseUrl, serverKey: demo.readerKey });
flags.on("change", () => console.log(`Flags from ${flags.status.source}:`, flags.allFlags()));
await flags.ready({ timeoutMs: 5_000 });

const server = createServer((request, response) => {
  const id = new URL(request.url ?? "/", "http://localhost").searchParams.get("user") ?? "guest";
  const age = flags.isEnabled("new-checkout", { id }) ? "new" : "old";
  const color = flags.getString("checkout-color", { id }, "gray");
  response.end(`${id} gets the ${age} checkout in ${color}\n`);
});
server.listen(port, () => {
  const { port: opened } = server.address() as AddressInfo;
  console.log(`Open http://localhost:${opened}/?user=anna`);
  console.log("Then run in another terminal: npm run toggle --workspace clients/examples");
});
