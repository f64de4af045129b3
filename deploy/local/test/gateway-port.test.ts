import { describe, expect, it } from "@jest/globals";
import { portProblem } from "../src/gateway-port.ts";

describe("given the port of the gateway", () => {
  it("has no problem when it is free", () => {
    expect(portProblem(8080, "free")).toBeUndefined();
  });

  it("suggests stopping the other program when the port is taken", () => {
    expect(portProblem(8080, "taken")).toBe(
      "Port 8080 is taken by another program. " +
        "Stop that program, or choose another port: PORT=8081 npm start",
    );
  });

  it("suggests another port when only root may use it", () => {
    expect(portProblem(80, "forbidden")).toBe(
      "Port 80 is reserved for root on this system. Choose a port from 1024: PORT=8080 npm start",
    );
  });
});
