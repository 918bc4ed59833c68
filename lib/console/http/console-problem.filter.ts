import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { ConsoleProblem } from '../problem.js';
import { type ConsoleRequest, Exchange } from './exchange.js';

/** Responds with problem details. Errors of the app's own guards are left to the app's filters. */
@Catch(ConsoleProblem)
export class ConsoleProblemFilter implements ExceptionFilter<ConsoleProblem> {
  constructor(private readonly host: HttpAdapterHost) {}

  catch(problem: ConsoleProblem, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    new Exchange(this.host.httpAdapter, http.getRequest<ConsoleRequest>(), http.getResponse<object>()).problem(problem);
  }
}
