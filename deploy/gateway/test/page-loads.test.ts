import { afterAll, describe, expect, it } from "@jest/globals";
import { givenGateway, givenUpstream } from "./given-gateway.ts";

/** Tests that page loads at 127.0.0.1 continue at `localhost`, the host of cookies and passkeys. */

const upstream = await givenUpstream((_incoming, response) => void response.end("{}"));
const origins = [upstream.origin];
const given = (publicUrl: string) =>
  givenGateway({ management: origins, edges: origins, dashboards: origins, publicUrl });
const gateway = await given("http://localhost:8080");
const elsewhere = await given("https://flags.example.com");
afterAll(async () => {
  await gateway.stop();
  await elsewhere.stop();
  await upstream.close();
});

const load = (url: string, accept = "text/html,*/*", method = "GET") =>
  fetch(url, { method, headers: { accept }, redirect: "manual" });

describe("given an installation at localhost", () => {
  it("redirects page loads, with their path and query", async () => {
    const { status, headers } = await load(`${gateway.url}/flags?tag=a`);
    expect([status, headers.get("location")]).toEqual([307, "http://localhost:8080/flags?tag=a"]);
  });

  it("stays on this host for paths that name another one", async () => {
    const { headers } = await load(`${gateway.url}//example.com/`);
    expect(headers.get("location")).toMatch(/^http:\/\/localhost:8080\//);
  });

  it.each([
    ["a call of the API", "/api/v1/flags", "text/html"],
    ["a file of a page", "/assets/index.js", "*/*"],
  ])("forwards %s", async (_, path, accept) => {
    expect((await load(gateway.url + path, accept)).status).toBe(200);
  });

  it("forwards a write", async () => {
    expect((await load(`${gateway.url}/flags`, "text/html", "POST")).status).toBe(200);
  });

  it("forwards page loads at the name", async () => {
    expect((await load(`http://localhost:${gateway.port}/flags`)).status).toBe(200);
  });
});

describe("given an installation at another address", () => {
  it("forwards page loads", async () => {
    expect((await load(`${elsewhere.url}/flags`)).status).toBe(200);
  });
});
