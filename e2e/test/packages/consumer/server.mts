import { type Evaluator, runSuite } from "@halyard/conformance";
import { compile, contextOf, type Outcome, type ResolvedState } from "@halyard/evaluation";
import { createEvaluationEvents, HalyardProvider } from "@halyard/openfeature-server";
import { type Client, createClient, createTestClient, defineFlags } from "@halyard/server-sdk";
import { OpenFeature } from "@openfeature/server-sdk";
import { logs } from "@opentelemetry/api";

/** Uses the types of the packages for servers. It is compiled and not run. */
type FlagKeys = "new-checkout" | "dark-mode";

const client: Client<FlagKeys> = createClient<FlagKeys>({ baseUrl: "", serverKey: "" });
const isEnabled: boolean = client.isEnabled("new-checkout", { id: 1, plans: ["pro"] });
// @ts-expect-error: no such flag.
client.isEnabled("new-chekout");
// @ts-expect-error: an attribute is no object.
client.isEnabled("dark-mode", { address: { country: "DE" } });

const testClient: Client<FlagKeys> = createTestClient<FlagKeys>({ "new-checkout": true });
OpenFeature.setProvider(new HalyardProvider({ client: testClient }));
const evaluationEvents = createEvaluationEvents({ logger: logs.getLogger("shop") });
OpenFeature.setProvider(new HalyardProvider({ baseUrl: "", serverKey: "", evaluationEvents }));
createClient({ baseUrl: "", serverKey: "", evaluationEvents: { logger: logs.getLogger("shop") } });

const types = defineFlags({ "new-checkout": "boolean", color: "string", layout: "object" });
const typedClient = createClient<typeof types>({ baseUrl: "", serverKey: "" });
const color: string = typedClient.getString("color", { id: 1 }, "blue");
const columns: readonly number[] = typedClient.getObject("layout", null, { columns: [2] }).columns;
// @ts-expect-error: the flag is boolean.
typedClient.getString("new-checkout", null, "blue");

const evaluator: Evaluator = {
  evaluate(flag, context) {
    const outcome: Outcome = compile(flag as ResolvedState).evaluate(contextOf(context));
    return outcome;
  },
};
const { failed } = await runSuite(evaluator);
export const results = { isEnabled, color, columns, failed };
