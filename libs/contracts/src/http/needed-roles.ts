import type { Role } from "../people.ts";
import type { RouteContract } from "./route.ts";

/**
 * The role that each route needs, and where it must count. Every service decides by this table. A route that is not in it
 * is closed to people: it belongs to the operator, or to SDKs.
 */
export type Need = {
  role: Role;
  /**
   * - `environment`: the environment in the path, or that of the request
   * - `project`: the whole project in the path, or that of the request
   * - `any_environment`: the project, or at least one of its environments; the handler checks the rest
   * - `organization`: the whole organization
   * - `anywhere`: anywhere in the organization; the handler checks the rest
   */
  at: "environment" | "project" | "any_environment" | "organization" | "anywhere";
  /** The sign-in, or its confirmation, is at most `recentSignInMinutes` old. */
  recent?: true;
};

/** A route for everybody who is signed in. */
export const signedIn = "signed_in";

export const recentSignInMinutes = 30;

/** Request header with the environment of a request by session, in place of that of an API key. */
export const environmentHeader = "Halyard-Environment";

const viewProject: Need = { role: "viewer", at: "project" };
const viewEnvironment: Need = { role: "viewer", at: "environment" };
const editProject: Need = { role: "editor", at: "project" };
const editEnvironment: Need = { role: "editor", at: "environment" };
const administer: Need = { role: "admin", at: "project" };
const own: Need = { role: "owner", at: "organization" };
const viewAnywhere: Need = { role: "viewer", at: "anywhere" };
const administerAnywhere: Need = { role: "admin", at: "anywhere" };
const recently = (need: Need): Need => ({ ...need, recent: true });

const needs: Readonly<Record<string, Need | typeof signedIn>> = {
  createAudience: editProject,
  listAudiences: viewProject,
  getAudience: viewProject,
  updateAudience: editProject,
  deleteAudience: editProject,
  getAudienceHistory: viewProject,
  previewAudience: viewProject,
  replaceAudienceList: editProject,
  changeAudienceList: editProject,
  lookUpAudienceMember: viewProject,
  createFlag: { role: "editor", at: "any_environment" },
  listFlags: viewProject,
  getFlag: viewProject,
  updateFlag: { role: "editor", at: "any_environment" },
  updateFlags: editProject,
  deleteFlag: editProject,
  getDependents: viewProject,
  getFlagUsage: viewProject,
  getFlagState: viewEnvironment,
  updateFlagState: editEnvironment,
  explainFlag: viewEnvironment,
  setSchedule: editEnvironment,
  getSchedule: viewEnvironment,
  clearSchedule: editEnvironment,
  listSchedules: viewProject,
  getHistory: viewEnvironment,
  rollBack: editEnvironment,
  createChangeRequest: viewProject,
  listChangeRequests: viewProject,
  getChangeRequest: viewProject,
  updateChangeRequest: viewProject,
  openChangeRequest: viewProject,
  approveChangeRequest: { role: "approver", at: "any_environment" },
  rejectChangeRequest: { role: "approver", at: "any_environment" },
  withdrawChangeRequest: viewProject,
  rebaseChangeRequest: viewProject,
  applyChangeRequest: viewProject,
  bypassChangeRequest: recently({ role: "admin", at: "any_environment" }),
  listChanges: viewProject,
  streamChanges: viewProject,
  createWebhook: administer,
  listWebhooks: viewProject,
  getWebhook: viewProject,
  updateWebhook: administer,
  deleteWebhook: administer,
  testWebhook: administer,
  listDeliveries: viewProject,
  getDelivery: viewProject,
  redeliver: administer,
  listOperators: signedIn,
  listPlans: signedIn,
  getUsage: viewProject,
  listUsageDays: viewProject,
  listFlagTraffic: viewProject,
  listReaders: viewProject,
  createEnvironment: administer,
  listEnvironments: viewProject,
  getEnvironment: viewProject,
  updateEnvironment: administer,
  deleteEnvironment: administer,
  issueKey: recently(viewProject),
  listKeys: viewProject,
  getKey: viewProject,
  rotateKey: recently(viewProject),
  revokeKey: viewProject,
  getOrganization: viewAnywhere,
  updateOrganization: own,
  createUser: { role: "admin", at: "organization" },
  listUsers: viewAnywhere,
  getUser: viewAnywhere,
  updateUser: { role: "admin", at: "organization" },
  deleteUser: { role: "admin", at: "organization" },
  createProject: own,
  listProjects: viewAnywhere,
  getProject: viewProject,
  updateProject: own,
  deleteProject: own,
  getSession: signedIn,
  listSessions: signedIn,
  endSessions: signedIn,
  listPasskeys: signedIn,
  deletePasskey: signedIn,
  acceptInvitation: signedIn,
  invite: recently(own),
  listInvitations: own,
  withdrawInvitation: own,
  createGrant: recently(administerAnywhere),
  listGrants: viewAnywhere,
  deleteGrant: recently(administerAnywhere),
  listOrganizationChanges: own,
};

/** Returns what a route needs of a person, and of the user of a server key; undefined if it is closed to people. */
export function needOf({
  operationId,
}: Pick<RouteContract, "operationId">): Need | typeof signedIn | undefined {
  return Object.hasOwn(needs, operationId) ? needs[operationId] : undefined;
}

/** Returns whether requests by session carry the header: those whose path names neither an environment nor a project. */
export function takesEnvironmentHeader(contract: Pick<RouteContract, "operationId" | "path">) {
  const need = needOf(contract);
  const namesPlace = /:(?:organizationId|projectId|environmentId|envId)\b/.test(contract.path);
  return need !== undefined && need !== signedIn && !namesPlace;
}
