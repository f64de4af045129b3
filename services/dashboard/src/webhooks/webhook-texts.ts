import { ApiProblem, fieldMessageOf } from "../api/problem.ts";
import type { EventName } from "../api/schema.d.ts";

/** The meanings of the events of webhooks, in the order of the life of a flag and of a change request. */
export const eventTexts: Readonly<Record<EventName, string>> = {
  "flag.created": "A flag was created.",
  "flag.updated": "Its name, description or type changed.",
  "flag.toggled": "It was turned on or off: by a person, a schedule or a rollback.",
  "flag_state.updated": "Its percentage or its rules changed.",
  "flag.deleted": "It was deleted.",
  "audience.updated": "An audience or its list changed, was created or deleted.",
  "change_request.opened": "Somebody asks for an approval of a change.",
  "change_request.approved": "A change request has the approvals that it needs.",
  "change_request.rejected": "A change request was rejected.",
  "change_request.applied": "An approved change was made.",
  "change_request.bypassed": "An admin or the operator made a change without approvals.",
  "change_request.stale": "Something else changed what a change request is based on.",
  "environment.protection_changed": "An environment got, changed or lost its protection.",
};
export const eventNames = Object.keys(eventTexts) as EventName[];

const webhookFields = ["name", "url", "events", "secret"] as const;
export type WebhookField = (typeof webhookFields)[number];

const fieldLabels: Readonly<Record<WebhookField, string>> = {
  name: "The name",
  url: "The URL",
  events: "The events",
  secret: "The secret",
};

/** Returns the field that an error of the API is about, and a text about it. */
export function fieldProblem(error: unknown): { field: WebhookField; text: string } | undefined {
  if (error instanceof ApiProblem && error.code === "CONFLICT_001")
    return { field: "name", text: "Another webhook has this name." };
  const message = fieldMessageOf(error);
  const field = webhookFields.find((name) => name === message?.path[0]);
  if (message === undefined || field === undefined) return undefined;
  return { field, text: `${fieldLabels[field]} ${message.text}` };
}

const bytesOfSecret = 32;

/** Returns a random secret in the format of Standard Webhooks. */
export function generateSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(bytesOfSecret));
  return `whsec_${btoa(String.fromCharCode(...bytes))}`;
}

/** A receiver for Node.js that verifies signatures. It reads the secret from its environment. */
export const receiverSnippet = `import { createServer } from "node:http";
import { Webhook } from "standardwebhooks"; // npm install standardwebhooks

const webhook = new Webhook(process.env.WEBHOOK_SECRET);

createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray());
  try {
    const { event, flag, environment, text } = webhook.verify(body, request.headers);
    console.log(event, flag?.key, environment?.name, text);
    response.writeHead(204).end();
  } catch {
    response.writeHead(401).end();
  }
}).listen(8090);`;

/** Says why a test did not succeed, and what to check. `status` is 0 without a response. */
export function explainFailure(status: number): string {
  if (status === 0)
    return "Check that the address is correct and public, that the server runs, and that its certificate is valid. It must respond within 30 seconds.";
  if (status >= 300 && status < 400)
    return "The server redirects. Halyard follows no redirects: enter the final URL.";
  if (status === 401 || status === 403)
    return "The receiver rejected the request. Check that it uses the secret of this webhook.";
  if (status === 404) return "The server has nothing at this path. Check the URL.";
  if (status === 410)
    return "With 410 a receiver asks to stop. Halyard disables a webhook if all attempts of a delivery get 410.";
  if (status === 429)
    return "The receiver limits its requests. Halyard sends deliveries again later.";
  if (status >= 500) return "The receiver failed. Its log says why.";
  return "Only a status from 200 to 299 counts as a success.";
}
