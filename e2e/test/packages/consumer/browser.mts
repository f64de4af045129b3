import { type Client, createClient, defineFlags } from "@halyard/browser-sdk";
import { createEvaluationEvents, HalyardProvider } from "@halyard/openfeature-web";
import { OpenFeature } from "@openfeature/web-sdk";

/** Uses the types of the packages for browsers, without those of Node.js. It is compiled and not run. */
type FlagKeys = "new-checkout" | "dark-mode";

const client: Client<FlagKeys> = createClient<FlagKeys>({
  baseUrl: "",
  clientKey: "",
  context: { id: "user-1" },
});
const isEnabled: boolean = client.isEnabled("new-checkout", true);
// @ts-expect-error: no such flag.
client.isEnabled("new-chekout");
await client.setContext({ id: "user-2" });

const declared = defineFlags({ "checkout-color": "string", limits: "object" });
const typedClient = createClient<typeof declared>({ baseUrl: "", clientKey: "" });
const color: string = typedClient.getString("checkout-color", "black");
// @ts-expect-error: the flag is a text.
typedClient.getNumber("checkout-color", 1);

OpenFeature.setProvider(new HalyardProvider({ baseUrl: "", clientKey: "" }));
const evaluationEvents = createEvaluationEvents({ logger: { emit() {} }, setId: "p/e" });
OpenFeature.setProvider(new HalyardProvider({ baseUrl: "", clientKey: "", evaluationEvents }));
export const results = { isEnabled, color };
