import * as contract from "@halyard/contracts";
import { answer } from "@halyard/http";
import type { Routes } from "../access/routes.ts";
import { endUserSessions, unlinkUser } from "./person-changes.ts";

/** Registers the routes of the persons of users, for the operator. */
export function registerPersonRoutes(routes: Routes): void {
  routes.write(contract.endUserSessions, {
    run: (change, { params }) => endUserSessions(change, params),
    answer: answer.noContent,
  });

  routes.write(contract.unlinkUser, {
    run: (change, { params }) => unlinkUser(change, params),
    answer: answer.noContent,
  });
}
