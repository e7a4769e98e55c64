// SPDX-License-Identifier: BSD-3-Clause
/*
 * StartJMeter.java - starts JMeter as Debian packages it, with its own arguments
 *
 * Debian's JMeter 2.13 can't load any plan: XStream, with which it reads them, only makes objects of classes that were permitted
 * since version 1.4.18, and this JMeter is older than that. This permits JMeter's own classes, and changes nothing else.
 *
 *	java -cp /usr/share/jmeter/bin/ApacheJMeter.jar -Djmeter.home=/usr/share/jmeter StartJMeter.java -n -t PLAN
 */
import java.lang.reflect.Field;

public final class StartJMeter {
	public static void main(String[] arguments) throws Exception {
		String home = System.getProperty("jmeter.home");
		Class<?> driver = Class.forName("org.apache.jmeter.NewDriver"); // which makes the loader of all other classes
		Field own = driver.getDeclaredField("loader");
		own.setAccessible(true);
		ClassLoader loader = (ClassLoader)own.get(null);
		Thread.currentThread().setContextClassLoader(loader);

		// reading plans is set up from these, so that they have to be there first
		Class<?> utils = loader.loadClass("org.apache.jmeter.util.JMeterUtils");
		utils.getMethod("loadJMeterProperties", String.class).invoke(null, home + "/bin/jmeter.properties");
		utils.getMethod("setJMeterHome", String.class).invoke(null, home);

		Field reader = Class.forName("org.apache.jmeter.save.SaveService", true, loader).getDeclaredField("JMXSAVER");
		reader.setAccessible(true);
		Object xstream = reader.get(null);
		xstream.getClass().getMethod("allowTypesByWildcard", String[].class)
			.invoke(xstream, (Object)new String[] {"org.apache.jmeter.**", "org.apache.jorphan.**"});

		driver.getMethod("main", String[].class).invoke(null, (Object)arguments);
	}
}
