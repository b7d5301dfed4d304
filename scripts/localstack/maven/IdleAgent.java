/**
 * LocalStack starts DynamoDB Local with an agent of its own, which lifts a limit that Ebbtide does not reach. It comes
 * with a download that this set-up replaces, so an agent that does nothing takes its place.
 */
public final class IdleAgent {
  private IdleAgent() {}

  public static void premain(String arguments) {}
}
