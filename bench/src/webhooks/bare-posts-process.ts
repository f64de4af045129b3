import { Agent, request } from "node:http";
import got from "got";
import { answerParent } from "../processes/answer-parent.ts";

/**
 * The baseline of deliveries: sends requests with the dispatcher's HTTP library, and with bare `node:http`.
 * It signs, claims and records nothing. It keeps connections like the dispatcher.
 */
export type PostsQuestion = {
  client: "got" | "node:http";
  urls: readonly string[];
  count: number;
  atOnce: number;
  headers: Record<string, string>;
  body: string;
};
export type PostsAnswer = { tookMs: number };

const agent = new Agent({ keepAlive: true, maxFreeSockets: 16 });
const clients = { got: postByGot, "node:http": postByNode };

answerParent<PostsQuestion>({
  greeting: {},
  async answer(question) {
    const { client, urls, count } = question;
    let next = 0;
    async function postInTurn(): Promise<void> {
      while (next < count) {
        const url = urls[next % urls.length] as string;
        next += 1;
        await clients[client](url, question);
      }
    }
    const beganMs = performance.now();
    await Promise.all(Array.from({ length: question.atOnce }, postInTurn));
    return { tookMs: performance.now() - beganMs } satisfies PostsAnswer;
  },
});

async function postByGot(url: string, { headers, body }: PostsQuestion): Promise<void> {
  await got.post(url, { headers, body, agent: { http: agent }, retry: { limit: 0 } });
}

function postByNode(url: string, { headers, body }: PostsQuestion): Promise<void> {
  return new Promise((resolve, reject) => {
    request(url, { method: "POST", agent, headers }, (response) => {
      response.resume();
      response.on("end", resolve);
    })
      .on("error", reject)
      .end(body);
  });
}
