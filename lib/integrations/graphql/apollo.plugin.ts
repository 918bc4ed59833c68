import { Injectable, SetMetadata } from '@nestjs/common';
import type { DocumentNode, GraphQLSchema, OperationDefinitionNode } from 'graphql';
import type { Operation } from './operation.js';
import { sourceIn } from './operation-source.js';
import { Operations } from './operations.js';

/** The metadata key of `@Plugin` of `@nestjs/apollo`, in version 13 and 14. */
const PLUGIN = 'graphql:plugin';

interface ApolloRequest {
  readonly schema: GraphQLSchema;
  readonly document?: DocumentNode;
  readonly operation?: OperationDefinitionNode | null;
  readonly contextValue: object;
  readonly request: { readonly variables?: unknown };
  readonly response: { readonly http?: { status?: number | undefined }; readonly body?: ApolloBody };
  /** The errors as they were thrown. The app may remove the paths from the errors that it sends. */
  readonly errors?: readonly unknown[];
}

/** A response body. If it is sent in parts, the whole is not available. */
type ApolloBody =
  | { readonly kind: 'single'; readonly singleResult: ApolloResult }
  | { readonly kind: 'incremental'; readonly initialResult: ApolloResult };

interface ApolloResult {
  readonly data?: unknown;
  extensions?: Record<string, unknown>;
}

/** The functions that Apollo Server calls while a request runs. */
export interface ApolloListener {
  /** Checks the limits of the operation. If a limit rejects, this rejects and nothing of the operation runs. */
  didResolveOperation(request: object): Promise<void>;
  /** Ends the operation, unless more parts of the response follow. */
  willSendResponse(request: object): Promise<void>;
  /** Ends the operation with the last part of its response. */
  willSendSubsequentPayload(request: object, payload: object): Promise<void>;
}

/**
 * A plugin for Apollo Server. `ApolloDriver` finds it by itself; a `GraphQLModule` with `include` needs it among its `plugins`.
 */
@Injectable()
@SetMetadata(PLUGIN, true)
export class RateLimitApolloPlugin {
  /** @internal True if a server uses it. */
  isUsed = false;

  /** @internal */
  constructor(private readonly operations: Operations) {}

  /** Called by Apollo Server when it starts. Rejects with `RateLimitConfigError` for a wrong directive in the schema. */
  async serverWillStart({ schema }: { readonly schema: object }): Promise<void> {
    this.isUsed = true;
    this.operations.checkSchema(schema as GraphQLSchema);
  }

  /** Called by Apollo Server for each request. */
  async requestDidStart(): Promise<ApolloListener> {
    let operation: Operation | undefined;
    let isRefused = false;
    return {
      didResolveOperation: async (request) => {
        operation = this.begin(request as ApolloRequest);
        try {
          await operation?.decision;
        } catch (error) {
          isRefused = true;
          throw error;
        }
      },
      willSendResponse: async (request) => {
        if (operation === undefined) return;
        const { response, errors } = request as ApolloRequest;
        const { http, body } = response;
        const result = body?.kind === 'incremental' ? body.initialResult : body?.singleResult;
        // The same status as for a single rejected field.
        if (isRefused && http !== undefined) http.status = 200;
        if (!isRefused) {
          if (body?.kind === 'incremental') this.operations.settle(operation, undefined);
          else this.operations.end(operation, body && { data: result?.data, errors });
        }
        const { report } = operation;
        if (report !== undefined && result !== undefined) result.extensions = { ...result.extensions, cost: report };
      },
      willSendSubsequentPayload: async (_request, payload) => {
        // Deferred fields may still begin until the last part.
        if (operation !== undefined && (payload as { readonly hasNext?: boolean }).hasNext !== true)
          this.operations.giveBack(operation);
      },
    };
  }

  private begin({ schema, document, operation, contextValue, request }: ApolloRequest): Operation | undefined {
    if (!operation || document === undefined) return undefined;
    const source = sourceIn(document, schema, operation, request.variables, contextValue);
    return source && this.operations.begin(source);
  }
}
