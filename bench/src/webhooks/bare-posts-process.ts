import { Agent, request } from "node:http";
import got from "got";
import { answerParent } from "../processes/answer-parent.ts";
import { repeatAtOnce } from "../processes/arrivals.ts";
import { payload } from "./payload.ts";

/**
 * The baseline of deliveries: sends requests with the dispatcher's HTTP library, and with bare `node:http`.
 * It signs, claims and records nothing. It keeps connections like the dispatcher.
 */
const agent = new Agent({ keepAlive: true, maxFreeSockets: 16 });
/** Number of concurrent requests, as in the dispatcher. */
const atOnce = 192;

const headers = {
  ...{ "Content-Type": "application/json", "User-Agent": "Halyard/0.1.0" },
  "X-Service-Event": "flag.toggled",
  "X-Service-Delivery": "019a9f00-0000-7000-8000-000000000004",
  ...{ "webhook-id": "019a9f00-0000-7000-8000-000000000004", "webhook-timestamp": "1763640000" },
  "webhook-signature": `v1,${"A".repeat(44)}`,
  "X-Service-Signature": `sha256=${"0".repeat(64)}`,
};

const clients = {
  async got(url: string): Promise<void> {
    await got.post(url, { headers, body: payload, agent: { http: agent }, retry: { limit: 0 } });
  },
  "node:http": (url: string) =>
    new Promise<void>((resolve, reject) => {
      request(url, { method: "POST", agent, headers }, (response) => {
        response.resume();
        response.on("end", resolve);
      })
        .on("error", reject)
        .end(payload);
    }),
};
export type PostsClient = keyof typeof clients;

const api = {
  /** Sends the requests of as many deliveries. Returns the milliseconds. */
  async post(order: { client: PostsClient; urls: readonly string[]; count: number }) {
    const { client, urls, count } = order;
    const post = clients[client];
    const beganMs = performance.now();
    await repeatAtOnce({ count, atOnce }, (number) => post(urls[number % urls.length] as string));
    return performance.now() - beganMs;
  },
};
export type PostsApi = typeof api;
answerParent(api);
