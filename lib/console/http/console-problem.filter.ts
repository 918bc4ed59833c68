import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { ConsoleProblem } from '../problem.js';
import { Exchange } from './exchange.js';

/** Answers with problem details. What the app's own guards throw is for the app's filters. */
@Catch(ConsoleProblem)
export class ConsoleProblemFilter implements ExceptionFilter<ConsoleProblem> {
  constructor(private readonly host: HttpAdapterHost) {}

  catch(problem: ConsoleProblem, host: ArgumentsHost): void {
    Exchange.of(host, this.host.httpAdapter).problem(problem);
  }
}
