import {
  type AnyRoute,
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  type RouteComponent,
  redirect,
  retainSearchParams,
} from "@tanstack/react-router";
import { readCompareSearch } from "./compare/compare-search.ts";
import { FlagsPage } from "./flag-list/flags-page.tsx";
import { readFlagSearch } from "./flags/flag-search.ts";
import { readHistorySearch } from "./history/history-search.ts";
import { KeyLayout } from "./shell/key-layout.tsx";
import { NotFound } from "./shell/not-found.tsx";
import { OperatorLayout } from "./shell/operator-layout.tsx";
import { PageError } from "./shell/page-error.tsx";
import { readUsageSearch } from "./usage/usage-search.ts";
import { readDeliverySearch } from "./webhooks/delivery-status.ts";

/** The name of the chosen environment. All pages keep it. */
type EnvironmentSearch = { env?: string | undefined };

const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);

/** Loads the code of a page when the page is opened. */
const page = lazyRouteComponent;

const keyRoot = createRootRoute({
  component: KeyLayout,
  notFoundComponent: NotFound,
  validateSearch: (search): EnvironmentSearch => ({ env: text(search.env) }),
  search: { middlewares: [retainSearchParams<EnvironmentSearch>(["env"])] },
});

type Page = {
  parent?: AnyRoute;
  path: string;
  component: RouteComponent;
  /** Reads the filters of the page in the address. */
  search?: (search: Record<string, unknown>) => object;
};

function route({ parent = keyRoot, path, component, search }: Page): AnyRoute {
  const getParentRoute = () => parent;
  return createRoute({
    getParentRoute,
    path,
    component,
    ...(search && { validateSearch: search }),
  });
}

const flagRoute = route({
  path: "/flags/$flagKey",
  component: page(() => import("./flags/flag-page.tsx"), "FlagPage"),
});
const flagTabs = [
  { path: "/", component: page(() => import("./targeting/targeting-tab.tsx"), "TargetingTab") },
  {
    path: "/schedule",
    component: page(() => import("./schedules/schedule-tab.tsx"), "ScheduleTab"),
  },
  { path: "/history", component: page(() => import("./history/history-tab.tsx"), "HistoryTab") },
  { path: "/settings", component: page(() => import("./flags/settings-tab.tsx"), "SettingsTab") },
].map((tab) => route({ parent: flagRoute, ...tab }));

/** The pages of a server key. The first page is in the main bundle; the others are loaded when they are opened. */
const keyRoutes = [
  createRoute({
    getParentRoute: () => keyRoot,
    path: "/",
    beforeLoad: () => {
      throw redirect({ to: "/flags" });
    },
  }),
  route({ path: "/flags", search: readFlagSearch, component: FlagsPage }),
  flagRoute.addChildren(flagTabs),
  route({
    path: "/schedules",
    component: page(() => import("./schedules/schedules-page.tsx"), "SchedulesPage"),
  }),
  route({
    path: "/compare",
    search: readCompareSearch,
    component: page(() => import("./compare/compare-page.tsx"), "ComparePage"),
  }),
  route({
    path: "/history",
    search: readHistorySearch,
    component: page(() => import("./history/history-page.tsx"), "HistoryPage"),
  }),
  route({
    path: "/webhooks",
    component: page(() => import("./webhooks/webhooks-page.tsx"), "WebhooksPage"),
  }),
  route({
    path: "/webhooks/$webhookId",
    search: readDeliverySearch,
    component: page(() => import("./webhooks/webhook-page.tsx"), "WebhookPage"),
  }),
  route({
    path: "/usage",
    search: readUsageSearch,
    component: page(() => import("./usage/usage-page.tsx"), "UsagePage"),
  }),
  route({ path: "/keys", component: page(() => import("./keys/keys-page.tsx"), "KeysPage") }),
  route({
    path: "/environments",
    component: page(() => import("./environments/environments-page.tsx"), "EnvironmentsPage"),
  }),
];

export function createKeyRouter() {
  return createRouter({
    routeTree: keyRoot.addChildren(keyRoutes),
    defaultPreload: "intent",
    defaultErrorComponent: PageError,
    scrollRestoration: true,
  });
}

const operatorRoot = createRootRoute({ component: OperatorLayout, notFoundComponent: NotFound });
const operatorRoutes = [
  {
    path: "/",
    component: page(() => import("./operator/organizations-page.tsx"), "OrganizationsPage"),
  },
  {
    path: "/organizations/$organizationId",
    component: page(() => import("./operator/organization-page.tsx"), "OrganizationPage"),
  },
  {
    path: "/organizations/$organizationId/projects/$projectId",
    component: page(() => import("./operator/project-page.tsx"), "ProjectPage"),
  },
  { path: "/status", component: page(() => import("./operator/status-page.tsx"), "StatusPage") },
].map((each) => route({ parent: operatorRoot, ...each }));

/** An operator can sign in at the address of a page for keys. */
const pagesOfKeys = [
  "flags",
  "schedules",
  "compare",
  "history",
  "webhooks",
  "usage",
  "keys",
  "environments",
].map((name) =>
  createRoute({
    getParentRoute: () => operatorRoot,
    path: `/${name}/$`,
    beforeLoad: () => {
      throw redirect({ to: "/" });
    },
  }),
);

export function createOperatorRouter() {
  return createRouter({
    routeTree: operatorRoot.addChildren([...operatorRoutes, ...pagesOfKeys]),
    defaultPreload: "intent",
    defaultErrorComponent: PageError,
  });
}
