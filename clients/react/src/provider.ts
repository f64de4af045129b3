import {
  type BooleanFlags,
  type Client,
  type ClientOptions,
  createClient,
  createTestClient,
  type InitialValues,
} from "@halyard/browser-sdk";
import {
  createContext,
  createElement,
  type ReactElement,
  type ReactNode,
  useContext,
  useEffect,
  useMemo,
  useState,
} from "react";

/** Values of boolean flags by key. */
export type Flags = BooleanFlags;

export type HalyardProviderProps = {
  children?: ReactNode;
  /** The values that the server used for the page. Default: `bootstrap` of the client or its options. */
  bootstrap?: InitialValues | undefined;
} & (
  | {
      /** A client that the application created, connects and closes. */
      client: Client;
      options?: undefined;
    }
  | {
      /**
       * Options of a client that is connected while the provider is mounted, never on a server. A new `context`
       * switches the user. Changes of other options need a new `key` of the provider.
       */
      options: ClientOptions;
      client?: undefined;
    }
);

export type Provided = {
  client: Client;
  /** Has the initial values, which a server and a hydrating page render. It connects to nothing. */
  initial: Client;
};

const HalyardContext = createContext<Provided | undefined>(undefined);

/** Provides flags to the components below it. */
export function HalyardProvider(props: HalyardProviderProps): ReactElement {
  const { children, options, bootstrap } = props;
  const [own] = useState(() =>
    props.client === undefined
      ? createClient({
          ...options,
          bootstrap: bootstrap ?? options?.bootstrap,
          autoConnect: false,
        } as ClientOptions)
      : undefined,
  );
  const client = (props.client ?? own) as Client;

  useEffect(() => {
    own?.connect();
    return () => own?.close();
  }, [own]);

  // The client ignores an equal context, which an application may create for each rendering.
  const context = options?.context;
  useEffect(() => {
    void own?.setContext(context);
  }, [own, context]);

  const values = bootstrap ?? client.bootstrap;
  const provided = useMemo(() => ({ client, initial: createTestClient(values) }), [client, values]);
  return createElement(HalyardContext.Provider, { value: provided }, children);
}

let withoutProvider: Provided | undefined;

/** Returns the client of the nearest provider. Without one, all fallbacks apply and an error is logged once. */
export function useProvided(): Provided {
  const provided = useContext(HalyardContext);
  if (provided !== undefined) return provided;
  if (withoutProvider === undefined) {
    console.error("Halyard: a hook was called outside of HalyardProvider; all fallbacks apply.");
    const client = createTestClient();
    withoutProvider = { client, initial: client };
  }
  return withoutProvider;
}
