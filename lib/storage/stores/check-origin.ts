/** The route of a request or call, as callers know it. */
export interface RequestRoute {
  /**
   * Over HTTP the method, such as `GET`; for GraphQL `query`, `mutation` or `subscription`; for other calls their transport, such
   * as `ws` or `rpc`.
   */
  readonly method: string;
  /** The pattern of the route's path, such as `/reports/:id`; for other calls the field, message or pattern. */
  readonly path: string;
}

/** The request that a check is made for. */
export interface CheckOrigin {
  /** Its context in Nest. */
  readonly context: object;
  /** The request, as its transport reads it. */
  readonly request: object | undefined;
  /** Its route, once that is known. */
  readonly route: RequestRoute | undefined;
}
